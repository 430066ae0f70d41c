"""Numbers that verdicts and pages share, each computed in one place."""
