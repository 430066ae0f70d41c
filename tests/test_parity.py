"""Our model against implementations nobody here wrote: Hugging Face's T5 v1.1 and M2M-100."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from mnmt_repro.interchange import from_transformers
from mnmt_repro.interchange.weights import M2M100_SPECIAL

T5_SHAPES: dict[str, dict[str, Any]] = {
    "narrow": dict(d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2),
    "uneven": dict(
        d_model=24, d_kv=5, d_ff=40, num_layers=2, num_decoder_layers=3, num_heads=3,
        relative_attention_num_buckets=8, relative_attention_max_distance=10,
    ),
    "deep": dict(d_model=64, d_kv=16, d_ff=160, num_layers=4, num_heads=4),
}  # fmt: skip
M2M_SHAPES: dict[str, dict[str, Any]] = {
    "narrow": dict(layers=(1, 1), d_model=16, d_ff=24, heads=2),
    "uneven": dict(layers=(2, 3), d_model=24, d_ff=40, heads=3),
    "deep": dict(layers=(4, 4), d_model=64, d_ff=160, heads=4, scale_embedding=False),
}
VOCABULARY = 50
TOLERANCE = dict(rtol=1e-5, atol=1e-5)


def randomise(model: torch.nn.Module, kinds: tuple[int, ...] = (1, 2)) -> None:
    """Give vectors (1), which begin at zero or one, and matrices (2) values of their own."""
    for parameter in model.parameters():
        if 1 in kinds and parameter.ndim == 1:
            parameter.data += 0.1 * torch.randn_like(parameter)
        if 2 in kinds and parameter.ndim == 2:
            parameter.data = torch.randn_like(parameter) * parameter.shape[1] ** -0.5


def make_t5(shape: str) -> Any:
    config = transformers.T5Config(
        vocab_size=VOCABULARY, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
        dropout_rate=0.0, **T5_SHAPES[shape],
    )  # fmt: skip
    torch.manual_seed(3)
    model = transformers.T5ForConditionalGeneration(config).eval()
    # Some versions tie even v1.1's output to its embedding: give it a parameter of its own.
    output = torch.randn(VOCABULARY, config.d_model) * config.d_model**-0.5
    model.lm_head.weight = torch.nn.Parameter(output)
    randomise(model, kinds=(1,))  # T5's own matrices are of a fair size, M2M-100's too small
    return model


def make_m2m100(shape: str) -> Any:
    options = dict(M2M_SHAPES[shape])
    (encoder, decoder), ff, heads = options.pop("layers"), options.pop("d_ff"), options.pop("heads")
    config = transformers.M2M100Config(
        vocab_size=VOCABULARY, encoder_layers=encoder, decoder_layers=decoder,
        encoder_ffn_dim=ff, decoder_ffn_dim=ff, encoder_attention_heads=heads,
        decoder_attention_heads=heads, max_position_embeddings=64,
        dropout=0.0, attention_dropout=0.0, encoder_layerdrop=0.0, decoder_layerdrop=0.0, **options,
    )  # fmt: skip
    torch.manual_seed(3)
    model = transformers.M2M100ForConditionalGeneration(config).eval()
    randomise(model)
    return model


def sentences(padded: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Source, decoder input and output with our ids; two rows of three end early if `padded`."""
    generator = torch.Generator().manual_seed(4)
    source = torch.randint(4, VOCABULARY, (3, 21), generator=generator)
    target = torch.randint(4, VOCABULARY, (3, 14), generator=generator)
    lengths = [(21, 14), (9, 5), (2, 12)] if padded else [(21, 14)] * 3
    for row, (s, t) in enumerate(lengths):
        source[row, s - 1], target[row, t - 1] = 1, 1
        source[row, s:], target[row, t:] = 0, 0
    start = torch.full((3, 1), 3)
    return source, torch.cat([start, target[:, :-1]], 1), target


def compare(theirs: Any, rows: Tensor, padded: bool) -> None:
    """Same loss, logits and gradients; `rows` has their id of each of our pieces."""
    source, target_in, target = sentences(padded)
    real = target != 0
    output = theirs(
        input_ids=rows[source],
        attention_mask=(source != 0).long(),
        decoder_input_ids=rows[target_in],
        labels=rows[target].masked_fill(~real, -100),
    )
    output.loss.backward()
    weights = dict(theirs.named_parameters())
    config = theirs.config.to_dict()
    ours = from_transformers(config, {k: v.detach() for k, v in weights.items()}).eval()
    # The gradients, taken for weights, fill a second model of ours: name by name to compare with.
    gradients = from_transformers(config, {k: v.grad for k, v in weights.items()})

    logits = ours(source, target_in)
    torch.testing.assert_close(logits[real], output.logits[..., rows][real], **TOLERANCE)
    loss = ours.loss(source, target_in, target) / real.sum()
    torch.testing.assert_close(loss, output.loss, **TOLERANCE)
    loss.backward()
    expected = dict(gradients.named_parameters())
    found = {name: parameter.grad for name, parameter in ours.named_parameters()}
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        assert gradient.abs().max() > 0, name
        torch.testing.assert_close(gradient, expected[name].detach(), **TOLERANCE, msg=name)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("shape", T5_SHAPES)
def test_t5(shape: str, padded: bool) -> None:
    compare(make_t5(shape), torch.arange(VOCABULARY), padded)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("shape", M2M_SHAPES)
def test_m2m100(shape: str, padded: bool) -> None:
    rows = torch.arange(VOCABULARY)
    rows[:4] = torch.tensor(M2M100_SPECIAL)
    compare(make_m2m100(shape), rows, padded)


def test_long_sentences_reach_the_far_buckets_of_t5() -> None:
    theirs = make_t5("narrow")
    generator = torch.Generator().manual_seed(4)
    source = torch.randint(4, VOCABULARY, (2, 300), generator=generator)
    target = torch.randint(4, VOCABULARY, (2, 290), generator=generator)
    with torch.no_grad():
        expected = theirs(input_ids=source, decoder_input_ids=target).logits
        found = from_transformers(theirs.config.to_dict(), theirs.state_dict()).eval()(
            source, target
        )
    torch.testing.assert_close(found, expected, **TOLERANCE)
