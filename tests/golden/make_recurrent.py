#!/usr/bin/env python3
"""Writes recurrent.json: losses and gradients of torch.nn.LSTM and torch.nn.GRU for a few texts.

Usage: make_recurrent.py > recurrent.json   (needs numpy and torch)
Every case is embedding -> recurrent layers -> last state -> dense -> cross-entropy, one text at a
time, in double, with weights that number() makes; tests/runtime/device/recurrent_golden_test.cpp makes the
same. Parameters are in the order of the released file, without an LSTM's second bias, which is zero.
"""
import json
import math

import torch

torch.set_default_dtype(torch.double)

WORDS, COLUMNS, CLASSES, LONGEST = 7, 3, 3, 4


def number(i):
    """The i-th weight."""
    return 0.4 * math.sin(1.7 * i + 0.3 * (i % 11))


def parameters(layers):
    """Of the recurrent layers, in order; an LSTM's bias_hh is left out."""
    for layer in layers:
        for suffix in ["_l0", "_l0_reverse"] if layer.bidirectional else ["_l0"]:
            yield getattr(layer, "weight_ih" + suffix)
            yield getattr(layer, "weight_hh" + suffix)
            yield getattr(layer, "bias_ih" + suffix)
            if isinstance(layer, torch.nn.GRU):
                yield getattr(layer, "bias_hh" + suffix)


def case(kind, hidden, bidirectional):
    cell = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind]
    directions = 2 if bidirectional else 1
    table = torch.nn.Embedding(WORDS, COLUMNS)
    layers, inputs = [], COLUMNS
    for h in hidden:
        layers.append(cell(inputs, h, batch_first=True, bidirectional=bidirectional))
        inputs = h * directions
    last = torch.nn.Linear(inputs, CLASSES)
    every = [table.weight, *parameters(layers), last.weight, last.bias]
    at = 0
    with torch.no_grad():
        for layer in layers:
            for p in layer.parameters():
                p.zero_()
        for p in every:
            p.copy_(torch.tensor([number(at + i) for i in range(p.numel())]).view_as(p))
            at += p.numel()

    texts = []
    for length in range(LONGEST + 1):
        words = [(3 * t * t + 2 * t + length) % WORDS for t in range(length)]
        label = length % CLASSES
        for p in every:
            p.grad = torch.zeros_like(p)
        if length == 0:
            state = torch.zeros(1, inputs, dtype=torch.double)
        else:
            x = table(torch.tensor([words]))
            for layer in layers:
                x, end = layer(x)
            h = end[0] if kind == "lstm" else end
            state = torch.cat(list(h), dim=-1)
        loss = torch.nn.functional.cross_entropy(last(state), torch.tensor([label]))
        loss.backward()
        gradient = torch.cat([p.grad.flatten() for p in every])
        texts.append({"words": words, "label": label, "loss": loss.item(),
                      "gradient": [float(f"{g:.7g}") for g in gradient]})
    return {"kind": kind, "hidden": hidden, "bidirectional": bidirectional, "parameters": at,
            "texts": texts}


print(json.dumps({
    "words": WORDS, "columns": COLUMNS, "classes": CLASSES, "longest": LONGEST,
    "cases": [case(kind, hidden, bidirectional) for kind in ("lstm", "gru")
              for hidden in ([5], [4, 3]) for bidirectional in (False, True)],
}))
