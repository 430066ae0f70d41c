"""Which runs make which figure, declared as data. No torch is needed here."""
