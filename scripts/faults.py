#!/usr/bin/env python3
"""Faults in places that pass a noise, a sensitivity, a rate, a step, a count or a charge: which of
them do settings made by machine, checked transcripts and the oracle catch?

A copy of the sources gets all faults at once, each asleep; one build, and the tests run for each
fault that the environment wakes (CUDP_FAULT=PLACE:KIND), on settings that reach the place: first on
few, then on more, until the first finding.
Usage: scripts/faults.py [list | FIRST [LAST] | NAME...]
  list         what there is
  FIRST LAST   faults of these numbers; all if not given
  NAME         those whose line has this text
FAULT_SETTINGS (default 60): how many settings a fault has to survive. FAULT_BUILD: folder of the
build (default build-faults).
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("FAULT_BUILD", ROOT / "build-faults")).resolve()
SOURCES = BUILD / "src"

LESS, MORE, NEXT, BEFORE, NONE = "x0.9", "x1.1", "+1", "-1", "0"
BOTH = [LESS, MORE]
NUMBERS = [NEXT, BEFORE]

# File, a text that occurs once, the expression in it that is changed, how, and where the place is
# not reached by most settings, of which kind they have to be: KEY=VALUE with commas, as
# CUDP_SETTINGS_WITH in tests/audit/settings_search.hpp. How: x0.9, ..., or a name and C++ of x,
# what the expression is.
#
# FIFTEEN: those that tests were once asked to catch, of which five were not.
PLACES = [
    ("runtime/methods/dpsgd.cpp", ".draw = Poisson{plan().sampling_threshold},", "plan().sampling_threshold", BOTH + NUMBERS + [("FIFTEEN: sampling rate x 1.1 where the size is private", "context().size.is_public() ? x : x * 11 / 10")]),
    ("runtime/methods/schedule.cpp", "s.clip_norm = float_below(plan_.clip_norm);", "float_below(plan_.clip_norm)", [MORE]),
    ("runtime/methods/engine_method.cpp", "budget.fresh_key(ledger_index(step));", "ledger_index(step)", [NEXT] + [("FIFTEEN: repeated steps are not charged after --fresh-noise", "budget.ledger().authorised_until() + 0 * x", "method=dpsgd-quantile,ending=fresh noise")]),
    ("runtime/methods/engine_method.cpp", "budget.authorise(ledger_index(step), releases_of(step, end))", "end", [BEFORE]),
    ("runtime/methods/engine_method.cpp", "return {releases_of(step, step + 1).at(0).mechanism, ledger_index(step)};", "ledger_index(step)", NUMBERS, "method=dpsgd-quantile"),
    ("runtime/methods/engine_method.cpp", "sums.q = plan_.sampling_rate();", "plan_.sampling_rate()", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.sampling_threshold = plan_.sampling_threshold;", "plan_.sampling_threshold", BOTH + NUMBERS),
    ("runtime/methods/engine_method.cpp", "sums.sigma = plan_.noise_multiplier;", "plan_.noise_multiplier", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.clip_norm = plan_.clip_norm;", "plan_.clip_norm", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.sensitivity = plan_.sensitivity;", "plan_.sensitivity", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.noise_std = plan_.noise_multiplier * plan_.sensitivity;", "plan_.noise_multiplier * plan_.sensitivity", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.expected_batch = plan_.expected_batch;", "plan_.expected_batch", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.steps = steps_charged(ledger);", "steps_charged(ledger)", NUMBERS),
    ("runtime/methods/engine_method.cpp", ".delta = delta(),", "delta()", BOTH),
    ("runtime/methods/engine_method.cpp", "return is_fixed_ahead() ? bound.epsilon", "bound.epsilon", [LESS], "size-is-public="),
    ("runtime/methods/engine_method.cpp", "bound.epsilon : config().epsilon.value_or(kNoBound);", "config().epsilon.value_or(kNoBound)", [LESS], "method=dpis"),
    ("runtime/methods/schedule.cpp", "s.noise_std = float_above(plan_.noise_std_at(step));", "float_above(plan_.noise_std_at(step))", BOTH),
    ("runtime/methods/schedule.cpp", "s.noise_std = float_above(plan_.noise_std_at(step));", "step", NUMBERS, "method=dpsgd-decay"),
    ("runtime/methods/schedule.cpp", "s.inverse_batch = static_cast<float>(1.0 / plan_.expected_batch);", "plan_.expected_batch", BOTH),
    ("runtime/methods/schedule.cpp", "s.learning_rate = static_cast<float>(learning_rate(step));", "learning_rate(step)", BOTH),
    ("runtime/methods/schedule.cpp", "s.learning_rate = static_cast<float>(learning_rate(step));", "step", [NEXT], "schedule=cosine"),
    ("runtime/methods/schedule.cpp", "const double t = static_cast<double>(step) + 1.0;", "static_cast<double>(step) + 1.0", [NEXT], "optimizer=adam"),
    ("runtime/methods/schedule.cpp", "s.ema_decay = static_cast<float>(std::fmin(c.ema, t / (t + 9.0)));", "std::fmin(c.ema, t / (t + 9.0))", BOTH, "ema=*"),
    ("runtime/methods/plan.hpp", "return noise_multiplier_at(step) * sensitivity;", "sensitivity", BOTH),
    ("runtime/methods/plan.hpp", "return static_cast<double>(sampling_threshold) * 0x1p-32;", "static_cast<double>(sampling_threshold)", BOTH),
    ("runtime/methods/plan.cpp", "return span == noise.end() ? noise_multiplier : noise_multiplier * span->scale;", "noise_multiplier * span->scale", BOTH, "method=dpsgd-decay"),
    ("runtime/methods/plan.cpp", "plan.noise_multiplier_at(first)", "plan.noise_multiplier_at(first)", BOTH, "sigma=*,size-is-public="),
    ("runtime/methods/plan.cpp", "plan.noise_multiplier_at(first)", "first", [NEXT], "method=dpsgd-decay"),
    ("runtime/methods/plan.cpp", "end - first});", "end - first", NUMBERS),
    ("runtime/methods/make_plan.cpp", "std::ceil(batch / size.value * 0x1p32)", "size.value", BOTH),
    ("runtime/methods/make_plan.cpp", "plan.expected_batch = batch;", "batch", BOTH),
    ("runtime/methods/make_plan.cpp", "sensitivity(bound_of(shape.contribution, plan.clip_norm),", "plan.clip_norm", [LESS]),
    ("runtime/methods/make_plan.cpp", "plan.delta = *config.delta;", "*config.delta", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", "return plan().noise_multiplier / std::sqrt(1.0 - options().noise_share);", "plan().noise_multiplier", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", "return plan().noise_multiplier / (2.0 * std::sqrt(options().noise_share));", "plan().noise_multiplier", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", ".noise_std = count_noise(),", "count_noise()", BOTH + [("FIFTEEN: noise x 0.9 in the counts of dpsgd-quantile", "0.9 * x")]),
    ("runtime/methods/dpsgd_quantile.cpp", ".sensitivity = 0.5,", "0.5", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", ".step = t,", "t", NUMBERS),
    ("runtime/methods/dpsgd_quantile.cpp", ".noise_multiplier = gradient_noise_multiplier(),", "gradient_noise_multiplier()", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", ".expected_batch = plan().expected_batch,", "plan().expected_batch", BOTH),
    ("runtime/methods/adp_sgd.cpp", "return std::sqrt(c.lr / learning_rate(c, steps, steps_per_epoch, step));", "step", [NEXT]),
    ("runtime/methods/dpis.cpp", "return epoch_.sigma * epoch_.clip * size() / epoch_.total;", "epoch_.sigma", BOTH),
    ("runtime/methods/dpis.cpp", "s.noise_std = float_above(noise_multiplier() * of_direction);", "noise_multiplier()", BOTH),
    ("runtime/methods/dpis.cpp", "s.inverse_batch = static_cast<float>(epoch_.total / (size() * plan().expected_batch));", "epoch_.total", BOTH),
    ("runtime/methods/dpis.cpp", ".rate = plan().expected_batch / epoch_.total};", "epoch_.total", BOTH),
    ("runtime/methods/dpis.cpp", "const double noise = plan().epoch_noise * max_norm * (1.0 + kSumRounding);", "plan().epoch_noise", BOTH + [("FIFTEEN: noise x 0.9 in the totals of DPIS", "0.9 * x")]),
    ("runtime/methods/dpis.cpp", ".sensitivity = max_norm,", "max_norm", BOTH + [("FIFTEEN: sensitivity x 0.9 in the totals of DPIS", "0.9 * x")]),
    ("runtime/methods/dpis.cpp", ".charge = {privacy::Gaussian{plan().epoch_noise}, number}},", "plan().epoch_noise", [MORE]),
    ("runtime/methods/dp_agd.cpp", "const double sigma = 1.0 / std::sqrt(2.0 * rho);", "rho", BOTH),
    ("runtime/methods/dp_agd.cpp", ".charge = {privacy::Gaussian{sigma}, number}};", "sigma", [MORE]),
    ("runtime/methods/dp_agd.cpp", "const double epsilon = noisy_min_epsilon(settings_.rho_selection, settings_.selection);", "settings_.rho_selection", BOTH),
    ("runtime/gate/gate.cpp", "const double s = r.noise_std / r.grid;  // exact", "r.noise_std", BOTH),
    ("runtime/gate/gate.cpp", "const RandomStream stream{generator_, key_.key(), r.purpose, r.step};", "r.step", NUMBERS),
    ("runtime/gate/gate.cpp", "rounded_normals(stream, s, static_cast<std::int64_t>(at), part.size());", "s", BOTH),
    ("runtime/gate/privacy_budget.cpp", "at->count += charge.count;", "charge.count", [BEFORE]),
    ("runtime/gate/privacy_budget.cpp", "const std::uint64_t end = first + release.count;", "release.count", [BEFORE, NONE]),
    ("runtime/gate/privacy_budget.cpp", "ledger_.fresh_key(number);", "number", [NEXT], "ending=fresh noise"),
    ("runtime/methods/training_size.cpp", ".noise_std = noise,", "noise", BOTH),
    ("runtime/methods/training_size.cpp", ".charge = {privacy::Gaussian{noise}, {}}},", "noise", [MORE]),
    ("runtime/methods/training_size.cpp", "units_of(n, grid));", "n", BOTH + NUMBERS),
    ("runtime/device/cpu/cpu_engine.cpp", "const Leaving what = released_sum(step, grid, scalars.noise_std);", "scalars.noise_std", BOTH),
    ("runtime/device/cpu/cpu_engine.cpp", "                            .noise_std = scalars.noise_std,", "scalars.noise_std", BOTH),
    ("runtime/device/cpu/cpu_engine.cpp", ".noise = stream(Stream::noise, step),", "step", NUMBERS + [("FIFTEEN: with EMA each noise is used for two steps", "recipe.optimizer.keep_average ? x / 2 * 2 : x", "ema=*")]),
    ("runtime/device/cpu/cpu_engine.cpp", "counts[i] = k_.sample({.stream = stream(Stream::sampling, step),", "step", NUMBERS),
    ("runtime/device/cpu/cpu_engine.cpp", ".threshold = poisson != nullptr ? poisson->threshold : 0,", "poisson->threshold", BOTH),
    ("runtime/device/cpu/cpu_engine.cpp", "static_cast<float>(1.0 / grid)), grid);", "1.0 / grid", [MORE]),
    ("runtime/training/training.cpp", "method_->fresh_key(budget_, step_);", "step_", [NEXT], "ending=fresh noise"),
    ("runtime/results/certificate.cpp", "{\"times\", l.times},", "l.times", NUMBERS),
    ("runtime/results/certificate.cpp", "{\"noise_std\", l.noise_std},", "l.noise_std", BOTH),
    ("runtime/results/certificate.cpp", "{\"sensitivity\", l.sensitivity},", "l.sensitivity", BOTH),
    ("runtime/methods/releases_before.cpp", "all.push_back({privacy::Gaussian{size.noise}, 1});", "size.noise", BOTH),
    ("runtime/methods/releases_before.cpp", "all.push_back({privacy::Gaussian{noise}, 1});", "noise", BOTH, "features=pca"),
    # Where settings meet.
    ("runtime/methods/schedule.cpp", "s.noise_std = float_above(plan_.noise_std_at(step));", "plan_.noise_std_at(step)",
     [("FIFTEEN: noise x 0.9 where per-layer clipping, Adam and EMA meet", "c.clipping == Clipping::per_layer && c.optimizer == OptimizerKind::adam && c.ema > 0.0 ? 0.9 * x : x", "clipping=per-layer,optimizer=adam,ema=*")]),
    ("runtime/training/training.cpp", "metrics_.push_back(with_holdout(row));", "with_holdout(row)", [("FIFTEEN: N in metrics.jsonl with several threads", "(x.epsilon += experiment_.config.threads > 1 ? 1e-3 * static_cast<double>(experiment_.data.train.size()) : 0.0, x)", "threads=*")]),
    ("runtime/methods/engine_method.cpp", "return plan.count_epsilon + guarantee(plan, done, coarseness).epsilon;", "plan.count_epsilon + guarantee(plan, done, coarseness).epsilon", [LESS]),
    # Norms and clipping.
    ("kernels/contribution/clip_math.hpp", "return (x2 + 1.0f) *", "1.0f", [("FIFTEEN: norms without a bias", "0 * x")]),
    ("kernels/contribution/clip_math.hpp", "return L::fill(clip.max_norm) / (L::sqrt(square) + L::fill(clip.stability));", "clip.max_norm", [LESS, ("FIFTEEN: automatic clipping x 1.1", "1.1f * x", "clipping=automatic")], "clipping=automatic"),
    ("kernels/contribution/clip_math.hpp", "return L::fill(clip.max_norm) / (L::sqrt(square) + L::fill(clip.stability));", "clip.stability", [NONE, ("x2", "2 * x")], "clipping=automatic"),
    ("kernels/contribution/clip_math.hpp", "sqrtf(static_cast<float>(groups)) : 0.0f;", "static_cast<float>(groups)", [LESS, NEXT], "clipping=per-layer"),
    ("kernels/contribution/clip_math.hpp", "? L::fill(bound) / L::sqrt(square) : one;", "L::sqrt(square)", BOTH),
    ("kernels/contribution/clip_math.hpp", "const float square = clip.kind == Clipping::per_layer ? squared_norms[g] : total;", "total", BOTH),
    ("kernels/contribution/clip_math.hpp", "const float bound = clip.kind == Clipping::per_layer ? group_norm : clip.max_norm;", "clip.max_norm", BOTH),
    ("runtime/device/cpu/layer.cpp", "w.norm(e, group()) = w.kernels.square_sum(g, size_);", "size_",
     [("FIFTEEN: norms without a GRU's second bias", "x - 16", "model=text-gru.toml"),
      ("FIFTEEN: norms without group norm", "x == 32 ? 0 * x : x", "model=image.toml"),
      ("norms without the bias of an LSTM", "x - 16", "model=text-lstm.toml"),
      ("norms without the bias of a convolution", "x > 32 ? x - 16 : x", "model=image.toml")]),
    ("runtime/device/cpu/layer.cpp", ".scale = factor * sum.inverse_grid,", "factor", BOTH, "data=images,model=image.toml"),
    ("runtime/device/cpu/layers/embedding.cpp", "w.norm(e, group()) = w.kernels.square_sum(w.example_gradient(gradient_), runs * stride());", "runs * stride()",
     [("FIFTEEN: norms without an embedding", "0 * x"), ("norms without a word's last numbers", "x - 16")], "data=texts"),
    ("runtime/device/cpu/layers/embedding.cpp", ".scale = factor * sum.inverse_grid", "factor", BOTH, "data=texts"),
    ("runtime/device/cpu/layers/dense.cpp", "dy[o] = std::clamp(dy[o] * scale, -bound, bound);", "scale", BOTH),
    ("runtime/device/cpu/layers/dense.cpp", "w.norm(e, group()) = dense_squared_norm(x2, dy2, outputs_);", "x2", [LESS, NONE]),
    ("runtime/device/cpu/layers/dense.cpp", "w.norm(e, group()) = dense_squared_norm(x2, dy2, outputs_);", "dy2", [LESS]),
    # Class weights, behind the clipping and before it.
    ("runtime/device/cpu/worker.cpp", "for (int g = 0; g < groups(); ++g) f[g] *= weight;", "weight", [MORE, ("left out", "0 * x + 1.0f")], "class-weights=*,model=mlp"),
    ("runtime/device/cpu/worker.cpp", "for (int i = 0; i < network.outputs; ++i) gradient[i] *= weight;", "weight", [MORE, ("left out", "0 * x + 1.0f")], "class-weights=*,method=adaclip"),
    ("runtime/device/cpu/worker.cpp", "std::holds_alternative<AddAccepted>(use) ||", "std::holds_alternative<AddAccepted>(use)", [("candidates are accepted without their class's weight", "false && x")], "class-weights=*,method=dpis"),
    ("runtime/methods/engine_method.cpp", "s.class_weights = relative_class_weights(c.class_weights);", "relative_class_weights(c.class_weights)", [("left out", "std::vector<float>(x.begin(), x.begin())")], "class-weights=*"),
    ("runtime/config/class_weights.cpp", "relative.push_back(static_cast<float>(w / largest));", "w / largest", [LESS], "class-weights=*"),
    # Rows of a table by their codes.
    ("runtime/device/cpu/layers/dense.cpp", "reads_codes(w) ? coded_square(w, e)", "coded_square(w, e)", [LESS, NONE], "data=table,model=mlp"),
    ("kernels/fused/linear_group.hpp", "const Vec squared = dense_squared_norm(x2, d * d, 1);", "x2", [("x0.9", "x * 0.9f"), ("0", "x * 0.0f")], "data=table,model=logistic,method=dpsgd"),
    ("kernels/fused/linear_group.hpp", "const Vec squared = dense_squared_norm(x2, d * d, 1);", "d * d", [("x0.9", "x * 0.9f")], "data=table,model=logistic,method=dpsgd"),
    ("kernels/fused/linear_group.hpp", "broadcast(a.inverse_grid)), -bound), bound);", "a.inverse_grid", BOTH, "data=table,model=logistic,method=dpsgd"),
    ("kernels/fused/dense_linear_cpu.cpp", "*square = static_cast<float>(total);", "total", [("x0.9", "x * 0.9"), ("0", "x * 0.0")], "data=matrix,model=logistic,method=dpsgd"),
    ("kernels/fused/dense_linear_cpu.cpp", "numbers(g.row[e] + j) * g.scaled[e] + kToUnits", "g.scaled[e]", [("x0.9", "x * 0.9f"), ("x1.1", "x * 1.1f")], "data=matrix,model=logistic,method=dpsgd"),
    ("runtime/device/cpu/linear_sum.cpp", "kernels_.flush_units(units, part.totals.data(), bias_ + kColumnBlock);", "bias_ + kColumnBlock", [("without the bias", "x - 16")], "data=table,model=logistic,method=dpsgd"),
    ("runtime/device/cpu/linear_sum.cpp", "all_[to_size(coded.number_feature[k])] += all_[to_size(first_number_ + k)];", "all_[to_size(first_number_ + k)]", [("twice", "2 * x")], "data=table,model=logistic,method=dpsgd"),
    ("kernels/contribution/contribution.hpp", ".grid = sum_grid(norm),", "norm", [("x2", "2 * x")]),
    ("kernels/contribution/contribution.hpp", ".grid = sum_grid(norm),", "norm", [("x4", "4 * x")], "method=dpsgd-quantile"),
    ("runtime/device/sensitivity.cpp", "return (1.0 + norm_error) * (1.0 + roundings * kUnit) + grid - 1.0;", "(1.0 + norm_error) * (1.0 + roundings * kUnit) + grid - 1.0", [("none", "-1e-3 + 0 * x")]),
    # Sampling.
    ("kernels/contribution/importance.hpp", "const double q = ceil(importance_estimate(r, norm) * r.rate * kTwo32);", "r.rate", BOTH, "method=dpis"),
    ("kernels/contribution/importance.hpp", "threshold ? 1.0f / norm : 0.0f;", "1.0f / norm", BOTH, "method=dpis"),
    ("kernels/contribution/importance.hpp", "if (r.clip < n) n = r.clip;\n  const double q", "n", [], "method=dpis"),
    ("kernels/contribution/importance.hpp", "const double accepted = floor(n * r.rate * (1.0 - 0x1p-50) * kTwo32 / q * kTwo32);", "r.rate", BOTH, "method=dpis"),
    ("runtime/device/cpu/worker.cpp", "const float norm = std::sqrt(squared_norm(e));", "squared_norm(e)", BOTH, "method=dpis"),
    ("runtime/device/cpu/cpu_engine.cpp", "return AddAccepted{std::get<Candidates>(recipe.draw).rule, stream(Stream::acceptance, step),", "step", NUMBERS, "method=dpis"),
    ("runtime/methods/dpis.cpp", "  return {.clip = epoch_.clip,", "epoch_.clip", BOTH, "method=dpis"),
    ("runtime/methods/dpis.cpp", ".multiple = options().multiple,", "options().multiple", BOTH, "method=dpis"),
    ("runtime/methods/dpis.cpp", ".min_norm = options().floor * epoch_.clip,", "options().floor", BOTH, "method=dpis"),
    ("runtime/methods/dpis.cpp", "const double min_total = plan().expected_batch * clip * (1.0 + 1e-6);", "clip", BOTH, "method=dpis"),
    ("runtime/methods/dpis.cpp", "engine().norm_total(max_norm, grid));", "max_norm", BOTH, "method=dpis"),
    ("runtime/methods/dpis.cpp", "return std::fmin(1.0, plan().expected_batch * epoch_.clip / epoch_.total * (1.0 + kRounding));", "epoch_.clip", [LESS], "method=dpis"),
    # Steps of optimizers, and what goes on beside them.
    ("kernels/step/update_math.hpp", "const F minus_rate = L::fill(-s.learning_rate);", "s.learning_rate", BOTH),
    ("kernels/step/update_math.hpp", "const F decay = L::fill(o.weight_decay);", "o.weight_decay", BOTH, "weight-decay=*"),
    ("kernels/step/update_math.hpp", "m = L::fma(L::fill(o.momentum), m, g);\n    theta = L::fma(minus_rate, m, theta);", "o.momentum", BOTH),
    ("kernels/step/update_math.hpp", "theta = L::fma(minus_rate, L::fma(L::fill(o.momentum), m, g), theta);", "o.momentum", BOTH, "optimizer=nesterov"),
    ("kernels/step/update_math.hpp", "m = L::fma(L::fill(1.0f - o.beta1), g, L::fill(o.beta1) * m);", "L::fill(1.0f - o.beta1)", [("+ 0.1", "x + 0.1f")], "optimizer=adam"),
    ("kernels/step/update_math.hpp", "v = L::fma(L::fill(1.0f - o.beta2), g * g, L::fill(o.beta2) * v);", "L::fill(o.beta2)", [("x0.9", "x * 0.9f")], "optimizer=adam"),
    ("kernels/step/update_math.hpp", "const F root = L::sqrt(v * L::fill(s.bias2));", "s.bias2", BOTH, "optimizer=adam"),
    ("kernels/step/update_math.hpp", "const F direction = m * L::fill(s.bias1) /", "s.bias1", BOTH, "optimizer=adamw"),
    ("kernels/step/update_math.hpp", "return L::fma(L::fill(s.ema_decay), average - theta, theta);", "s.ema_decay", BOTH, "ema=*"),
    ("kernels/step/update_cpu.cpp", "load(t.released + i) * broadcast(a.scalars.inverse_batch);", "a.scalars.inverse_batch", BOTH),
    ("kernels/step/sample_cpu.cpp", "broadcast_u(static_cast<std::uint32_t>(a.threshold >> 16));", "a.threshold >> 16", NUMBERS),
    ("kernels/step/sample_cpu.cpp", "words_chunk(a.stream, first / 2, words);", "first / 2", [("the first examples' words for all", "0 * x")]),
    ("kernels/step/sample_cpu.cpp", "if (half < (a.threshold & 0xffff)) drawn", "(a.threshold & 0xffff)", BOTH),
    ("kernels/step/sample_cpu.cpp", "words_chunk(a.stream, kLowerBits + base / kSampleTile * 256, words);", "kLowerBits", [("the upper bits again", "0 * x")]),
    ("kernels/step/release_cpu.cpp", "const double s = static_cast<double>(a.noise_std) / a.grid;", "a.noise_std", BOTH),
    ("kernels/step/release_cpu.cpp", "rounded_normals_chunk(a.noise, s, j, units);", "j", [("the first chunk's for all", "0 * x")], "model=mlp"),
    ("kernels/step/step_size.hpp", "double beta = s.weight / static_cast<double>(1 + step % s.period);", "s.weight", BOTH, "method=adp-sgd,schedule=adaptive,adaptive-weight=*"),
    ("kernels/step/step_size.hpp", "double beta = s.weight / static_cast<double>(1 + step % s.period);", "step", [NEXT], "method=adp-sgd,schedule=adaptive,adaptive-weight=*"),
    ("runtime/device/cpu/cpu_engine.cpp", "const double g = static_cast<double>(released_[to_size(j)] * scalars.inverse_batch);", "scalars.inverse_batch", BOTH, "method=adp-sgd,schedule=adaptive"),
    ("runtime/methods/schedule.cpp", "s.bias1 = static_cast<float>(corrects_bias ? 1.0 / (1.0 - std::pow(c.beta1, t)) : 1.0);", "c.beta1", BOTH, "optimizer=adam"),
    ("runtime/methods/schedule.cpp", "s.bias2 = static_cast<float>(corrects_bias ? 1.0 / (1.0 - std::pow(c.beta2, t)) : 1.0);", "c.beta2", [LESS], "optimizer=adamw"),
    ("runtime/methods/schedule.cpp", ".momentum = static_cast<float>(c.momentum),", "c.momentum", BOTH),
    ("runtime/methods/schedule.cpp", ".weight_decay = static_cast<float>(c.weight_decay),", "c.weight_decay", BOTH, "weight-decay=*"),
    # adaclip.
    ("kernels/step/restore_math.hpp", "return L::fma(scale * L::fill(s.inverse_batch), released, mean);", "s.inverse_batch", BOTH, "method=adaclip"),
    ("kernels/step/restore_math.hpp", "mean = L::fma(L::fill(1.0f - c.beta1), g, L::fill(c.beta1) * mean);", "L::fill(1.0f - c.beta1)", [("x2", "x * 2.0f")], "method=adaclip"),
    ("kernels/step/restore_math.hpp", "const F noise = scale * L::fill(s.noise_std * s.inverse_batch);", "s.noise_std", BOTH, "method=adaclip"),
    ("runtime/device/cpu/coordinates.cpp", "const float inverse = 1.0f / (std::sqrt(deviation[j]) * scale_.root);", "scale_.root", BOTH, "method=adaclip"),
    ("runtime/device/cpu/coordinates.cpp", "mean_[at] = scale_.shrink * mean[j];", "mean[j]", BOTH, "method=adaclip"),
    ("kernels/contribution/contribution.hpp", "const double norm = std::holds_alternative<AcceptedDirection>(contribution) ? 1.0 : clip_norm;", "1.0", BOTH, "method=dpis"),
    ("kernels/contribution/contribution.hpp", "const double norm = std::holds_alternative<AcceptedDirection>(contribution) ? 1.0 : clip_norm;", "clip_norm", BOTH, "method=adaclip"),
    ("runtime/methods/adaclip.cpp", "static_cast<float>(std::sqrt(o.min_variance * o.max_variance))", "o.max_variance", BOTH, "method=adaclip"),
    # norm-bound, dpsgd-quantile.
    ("runtime/methods/norm_bound.cpp", "return of_logits * std::sqrt(inputs) * (1.0 + 1e-6);", "std::sqrt(inputs)", [("a tenth", "0.1 * x")], "method=norm-bound"),
    ("runtime/methods/norm_bound.cpp", "static_cast<double>(network.spec.huber)", "static_cast<double>(network.spec.huber)", [("half of a Huber loss's slope", "0.5 * x")], "method=norm-bound,loss=huber"),
    ("runtime/methods/dpsgd_quantile.cpp", "return {.target = options().target,", "options().target", BOTH, "method=dpsgd-quantile"),
    ("runtime/methods/dpsgd_quantile.cpp", "clip_norm_ = next_clip(rule(), clip_norm_, units_of(noisy, rule().grid));", "next_clip(rule(), clip_norm_, units_of(noisy, rule().grid))", BOTH, "method=dpsgd-quantile"),
    ("kernels/step/clip_rule.hpp", "s.clip_norm = clip;", "clip", BOTH, "method=dpsgd-quantile"),
    ("kernels/step/clip_rule.hpp", "if (r.normalised) s.inverse_batch = s.inverse_batch / clip;", "clip", BOTH, "method=dpsgd-quantile,quantile-normalise="),
    ("runtime/methods/dpsgd_quantile.cpp", "halves_of(batch.examples, batch.clipped, batch.non_finite);", "batch.clipped", [NEXT, NONE], "method=dpsgd-quantile"),
    ("runtime/methods/dpsgd_quantile.cpp", ".count_sensitivity = 0.5,", "0.5", BOTH, "method=dpsgd-quantile"),
    ("runtime/methods/dpsgd_quantile.cpp", ".count_noise_std = count_noise()};", "count_noise()", BOTH, "method=dpsgd-quantile"),
    ("runtime/methods/dpsgd_quantile.cpp", ".gradient_noise_multiplier = gradient_noise_multiplier(),", "gradient_noise_multiplier()", BOTH, "method=dpsgd-quantile"),
    # Features.
    ("runtime/data/table_rows.cpp", "if (malformed_ == Malformed::missing) {", "malformed_ == Malformed::missing", [("a row with a wrong number of cells is refused", "false && x")], "data=table,malformed=missing"),
    ("runtime/data/row_encoder.cpp", "return row.malformed || malformed_ == Malformed::missing ||", "malformed_ == Malformed::missing", [("a cell that cannot be read is refused", "false && x")], "data=table,malformed=missing"),
    ("runtime/results/released_model.cpp", "if (model.features.normalise != Normalise::none)", "model.features.normalise != Normalise::none", [("a model does not say how its input is normalised", "false && x")], "normalise=unit"),
    ("runtime/features/pca.cpp", "                 .noise_std = sigma,\n", "sigma", [("FIFTEEN: noise x 0.9 in PCA", "0.9 * x"), MORE], "features=pca"),
    ("runtime/features/pca.cpp", ".sensitivity = 1.0,", "1.0", BOTH, "features=pca"),
    ("runtime/features/pca.cpp", ".noise_std = sigma * std::sqrt(0.5) * (1.0 + 0x1p-51),", "std::sqrt(0.5)", BOTH, "features=pca"),
    ("runtime/features/pca.cpp", ".sensitivity = std::sqrt(0.5),", "std::sqrt(0.5)", BOTH, "features=pca"),
    ("runtime/features/pca.cpp", "const Charge charge{.mechanism = privacy::Gaussian{sigma}", "sigma", [MORE], "features=pca"),
    ("runtime/features/standardise.cpp", ".noise_std = sigma,", "sigma", [("FIFTEEN: noise x 0.9 in moments", "0.9 * x"), MORE], "features=scatter,feature-standardise="),
    ("runtime/features/standardise.cpp", ".sensitivity = 1.0,", "1.0", BOTH, "features=scatter,feature-standardise="),
    ("runtime/features/standardise.cpp", ".charge = {privacy::Gaussian{sigma}, {}}},", "sigma", [MORE], "features=scatter,feature-standardise="),
    ("runtime/results/certificate.cpp", "{\"sigma\", release.sigma},", "release.sigma", BOTH, "features=pca"),
    # The number of examples.
    ("runtime/methods/training_size.cpp", ".sensitivity = 1.0,", "1.0", BOTH),
    ("runtime/results/certificate.cpp", "{\"noise_std\", c.size.noise}};", "c.size.noise", BOTH),
    ("runtime/results/certificate.cpp", "{\"noisy_size\", static_cast<std::uint64_t>(c.size.value)},", "c.size.value", NUMBERS),
    ("runtime/results/certificate.cpp", "j[\"training_examples\"] = static_cast<std::uint64_t>(c.size.value);", "c.size.value", NUMBERS, "size-is-public="),
    # Units of privacy of several rows. (Less noise for them in outpert or privgene is refused: it spends more than the budget.)
    ("runtime/data/first_rows.cpp", "if (found->second.rows == schema_.unit->max_rows) return false;", "schema_.unit->max_rows", NUMBERS, "data=units,size-is-public="),
    ("runtime/data/first_rows.cpp", "if (row.malformed || is_missing(schema_, schema_.columns[column_], unit)) {", "row.malformed || is_missing(schema_, schema_.columns[column_], unit)", [("rows that cannot be read are a unit of their own", "malformed_ == Malformed::refuse && x")], "data=units,malformed=missing"),
    ("runtime/data/first_rows.cpp", "if (row.malformed || is_missing(schema_, schema_.columns[column_], unit)) {", "unit", [("a unit that is missing is one", "row.malformed ? x : std::string_view(\"x\")")], "data=units,malformed=missing"),
    ("runtime/data/load_table.cpp", "split.unit_rows = schema.unit->max_rows;", "schema.unit->max_rows", NUMBERS, "data=units"),
    ("runtime/methods/training_size.cpp", "return {n, 0.0, data.unit_rows};", "data.unit_rows", [BEFORE], "data=units,size-is-public="),
    ("runtime/methods/training_size.cpp", "return {std::fmax(1.0, std::round(noisy)), noise, data.unit_rows};", "data.unit_rows", [BEFORE], "data=units"),
    ("runtime/methods/make_plan.cpp", "plan.group = size.unit_rows;", "size.unit_rows", NUMBERS, "data=units"),
    ("runtime/methods/engine_method.cpp", "return privacy::renyi_budget(plan_.order, *config().epsilon, plan_.delta - plan_.failure, 0.0,\n                               plan_.group);", "plan_.group", NUMBERS, "data=units,method=dpsgd-decay,fresh-noise-allowed="),
    ("runtime/methods/dpis.cpp", "                               plan().group);", "plan().group", NUMBERS, "data=units,method=dpis"),
    ("runtime/methods/dp_agd_method.cpp", "budget_(dp_agd_budget(context.config, context.size.unit_rows)),", "context.size.unit_rows", NUMBERS, "data=units,method=dp-agd"),
    ("runtime/training/certify.cpp", "c.unit = {e.data.schema->unit->column, e.data.schema->unit->max_rows};", "e.data.schema->unit->max_rows", NUMBERS, "data=units"),
    # Hold-outs.
    ("runtime/results/holdout_figures.cpp", "std::sqrt(static_cast<double>(plan.releases) /", "static_cast<double>(plan.releases)", [LESS], "data=table,holdout-epsilon=*"),
    ("runtime/results/holdout_figures.cpp", "largest_mu(epsilon, delta) / static_cast<double>(unit_rows);", "static_cast<double>(unit_rows)", [LESS], "data=units,holdout-epsilon=*"),
    ("runtime/results/holdout_figures.cpp", "          .noise_std = plan.sigma,", "plan.sigma", BOTH, "data=table,holdout-epsilon=*"),
    ("runtime/results/holdout_figures.cpp", "          .sensitivity = 1.0,", "1.0", BOTH, "data=table,holdout-epsilon=*"),
    ("runtime/results/holdout_figures.cpp", "          .step = step,", "step", [NONE], "dataset=stays.csv,data=table,holdout-epsilon=*"),
    ("runtime/results/certificate.hpp", "double epsilon() const { return std::fmax(promise.epsilon, holdout.epsilon); }", "std::fmax(promise.epsilon, holdout.epsilon)", [LESS], "data=table,holdout-epsilon=*"),
    ("runtime/training/prepare.cpp", "release_for_features(e.data.train, feature_settings(e), size.value,", "e.data.train", [("rows that were held out as well", "(append_examples(e.data.test, x), x)")], "features=pca,data=table,holdout=*"),
    ("runtime/results/holdout_figures.cpp", "static_cast<std::uint64_t>(powers[j] / grid);", "powers[j]", BOTH + [("a row of no prediction counts twice", "2.0 * x")], "dataset=stays.csv,data=table,holdout-epsilon=*"),
    ("runtime/training/training.cpp", "t->plan_holdout(noise);", "noise", [MORE], "data=table,holdout-epsilon=*"),
    ("runtime/results/certificate.cpp", "{\"share\", plan.share},", "plan.share", BOTH, "data=table,holdout=*"),
    # dp-agd.
    ("runtime/methods/dp_agd.cpp", "  r.noise_std = sigma * r.sensitivity * kProduct;\n  if (r.noise_std", "r.sensitivity", [("FIFTEEN: noise x 0.9 in DP-AGD", "0.9 * x")], "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "engine_.clipped_gradient_sum(s.w, settings_.gradient_clip);", "settings_.gradient_clip", BOTH, "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "engine_.clipped_losses(unit, steps, settings_.loss_clip);", "settings_.loss_clip", BOTH, "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", ".sensitivity = linear_gradient_sensitivity(settings_.gradient_clip, d, max_examples),", "settings_.gradient_clip", [LESS], "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "linear_loss_sensitivity(settings_.loss_clip, settings_.max_examples),", "settings_.loss_clip", BOTH, "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "linear_loss_sensitivity(settings_.loss_clip, settings_.max_examples), epsilon,", "epsilon", BOTH, "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "gate_.stream(Stream::selection, number),", "number", [NEXT], "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "engine_.draw_batch(gate_.stream(Stream::sampling, s.iterations), settings_.threshold);", "settings_.threshold", BOTH, "method=dp-agd,mini-batch=*"),
    ("runtime/methods/dp_agd.cpp", "static_cast<double>(s.w[j]) - step *", "step", BOTH, "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "g[j] += examples_ * settings_.l2 * static_cast<double>(s.w[j]);", "settings_.l2", BOTH, "method=dp-agd,l2=*"),
    ("runtime/methods/dp_agd_method.cpp", ".loss_sensitivity = linear_loss_sensitivity(s.loss_clip, s.max_examples),", "s.loss_clip", BOTH, "method=dp-agd"),
    ("runtime/methods/noisy_min.cpp", "const double rate = std::nextafter(epsilon / sensitivity, 0.0);", "epsilon", BOTH, "method=privgene"),
    ("runtime/methods/noisy_min.cpp", "const double scale = sensitivity / epsilon;", "sensitivity", BOTH, "method=dp-agd,noisy-min=laplace"),
    # outpert, objpert, privgene.
    ("runtime/methods/output_perturbation.cpp", "                                        .noise_std = noise_std(),", "noise_std()", BOTH, "method=outpert"),
    ("runtime/methods/output_perturbation.cpp", "const double exact = (1.0 + 2.0 * tolerance_) / regulariser_;", "regulariser_", BOTH, "method=outpert"),
    ("runtime/methods/output_perturbation.cpp", "mu_ = std::sqrt(all * all - before * before);", "all * all", BOTH, "method=outpert"),
    ("runtime/methods/output_perturbation.cpp", "units_of(w, grid_));", "grid_", [("x0.5", "0.5 * x")], "method=outpert"),
    ("runtime/methods/output_perturbation.cpp", ".sensitivity = sensitivity_,\n                                .noise_std", "sensitivity_", BOTH, "method=outpert"),
    ("runtime/methods/output_perturbation.cpp", "                                .noise_std = noise_std(),\n                                .grid", "noise_std()", BOTH, "method=outpert"),
    ("runtime/methods/objective_perturbation.cpp", "with_b.linear.push_back(static_cast<double>(z) / mu_);", "mu_", BOTH, "method=objpert"),
    ("runtime/methods/objective_perturbation.cpp", "static_cast<float>(unscaled * (w[j] + output_noise_std_ * static_cast<double>(z[j]))));", "output_noise_std_", BOTH, "method=objpert"),
    ("runtime/methods/objective_perturbation.cpp", ".noise_std = 1.0 / mu_,", "mu_", BOTH, "method=objpert"),
    ("runtime/methods/objective_perturbation.cpp", "const std::vector<float> z = normal(1);", "1", [("the first noise again", "0 * x")], "method=objpert"),
    ("runtime/methods/privgene.cpp", "losses, last ? 1 : parents_, linear_loss_sensitivity(loss_clip_, max_examples_),", "loss_clip_", BOTH, "method=privgene"),
    ("runtime/methods/privgene.cpp", "selection_epsilon_, stream(Stream::selection, generation), task.gate.witness()))", "selection_epsilon_", BOTH, "method=privgene"),
    ("runtime/methods/privgene.cpp", "selection_epsilon_, stream(Stream::selection, generation), task.gate.witness()))", "generation", NUMBERS, "method=privgene"),
    ("runtime/methods/privgene.cpp", ".count = choices_}};", "choices_", NUMBERS, "method=privgene"),
    ("runtime/methods/privgene.cpp", ".loss_sensitivity = linear_loss_sensitivity(loss_clip_, max_examples_),", "loss_clip_", BOTH, "method=privgene"),
    # Plans and certificates.
    ("runtime/methods/make_plan.cpp", "? static_cast<std::uint64_t>(*config.steps)", "*config.steps", NUMBERS),
    ("runtime/methods/make_plan.cpp", "if (config.sigma) return *config.sigma;", "*config.sigma", BOTH, "sigma=*,size-is-public="),
    ("runtime/methods/method_context.cpp", "context.config.epsilon = split->training_epsilon;", "split->training_epsilon", BOTH),
    ("runtime/methods/method_context.cpp", "context.config.delta = split->training_delta;", "split->training_delta", BOTH),
    ("runtime/results/certificate.cpp", "{{\"epsilon\", c.split->count_epsilon},", "c.split->count_epsilon", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.grid = bound_of(recipe().contribution, plan_.clip_norm).grid;", "bound_of(recipe().contribution, plan_.clip_norm).grid", [("x2", "2 * x")]),
    ("runtime/methods/engine_method.cpp", "sums.steps_planned = plan_.steps;", "plan_.steps", NUMBERS),
    ("runtime/methods/engine_method.cpp", "sums.norm_total_noise = plan_.epoch_noise;", "plan_.epoch_noise", BOTH, "method=dpis"),
    ("runtime/results/certificate.cpp", "{{\"order\", s.bound.order},", "s.bound.order", BOTH),
    # The CUDA engine, emulated.
    ("runtime/device/cuda/step_sum.cpp", ".threshold = poisson != nullptr ? poisson->threshold : 0,", "poisson->threshold", BOTH, "device=cuda"),
    ("runtime/device/cuda/device_engine.cpp", "const double grid = bound_of(recipe.contribution, static_cast<double>(clip_norm)).grid;", "static_cast<double>(clip_norm)", [("x2", "2 * x")], "device=cuda"),
    ("kernels/fused/candidates.cuh", "stream.step = *a.step;", "*a.step", NUMBERS, "device=cuda,method=dpis"),
    ("runtime/device/cuda/norms.cpp", ".max_norm = max_norm,", "max_norm", BOTH, "device=cuda,method=dpis"),
    ("kernels/step/finish.cuh", "const double s = static_cast<double>(scalars.noise_std) / grid;", "scalars.noise_std", BOTH, "device=cuda"),
    # Coordinate-wise clipping in the fused kernels: w, its squares, its sum.
    ("kernels/contribution/coordinates_math.hpp", "return ScalarLanes::fma(x, dy, -mean) * inverse;", "-mean", [LESS, NONE]),
    ("kernels/contribution/coordinates_math.hpp", "return ScalarLanes::fma(x, dy, -mean) * inverse;", "inverse", BOTH),
    ("kernels/fused/fused_total.cuh", "return (gradient - t.mean[at]) * t.inverse[at];", "t.mean[at]", [LESS, NONE]),
    ("kernels/fused/fused_total.cuh", "return (gradient - t.mean[at]) * t.inverse[at];", "t.inverse[at]", BOTH),
    ("kernels/fused/fused_total.cuh", "gradient[i] = transformed(t, first + index, gradient[i]);", "first + index", [("the first number's", "0 * x")]),
    ("kernels/fused/fused_total.cuh", "square += gradient[i] * gradient[i];", "gradient[i] * gradient[i]", BOTH),
    ("kernels/fused/fused_total.cuh", "        square += w * w;\n", "w * w", BOTH + [("by the identity", "t.inverse[R::kWeightH + at] * t.inverse[R::kWeightH + at] * (s.pooled_b[i] * s.gradient_hidden[o] * (s.pooled_b[i] * s.gradient_hidden[o]) - 2.0f * (s.pooled_b[i] * s.gradient_hidden[o]) * t.mean[R::kWeightH + at] + t.mean[R::kWeightH + at] * t.mean[R::kWeightH + at])")]),
    ("kernels/fused/fused_total.cuh", "squares[layer] += w * w;", "w * w", BOTH + [NONE]),
    ("kernels/fused/fused_total.cuh", "const float w = transformed(t, index, gradient);", "index", [("the first number's", "0 * x")]),
    ("kernels/fused/fused_total.cuh", "rounded_product(scale[2], w.hidden_at(s, k, o));", "w.hidden_at(s, k, o)", [LESS, MORE, ("as the gradient", "s.pooled_b[thread_number() + k * kFusedThreads] * s.gradient_hidden[o]")]),
    ("kernels/fused/fused_total.cuh", "rounded_product(scale[layer], w.small_at(s, i));", "w.small_at(s, i)", BOTH),
    ("kernels/fused/fused_cnn.cuh", "own[1] = transform_convolution<B>(a.transform, R::kWeightB, gradient_b);", "R::kWeightB", NUMBERS),
    ("kernels/fused/fused_cnn.cuh", "own[2] = w.make_hidden(a.transform, s);", "w.make_hidden(a.transform, s)", BOTH + [NONE]),
    ("kernels/fused/fused_tile.cuh", "mean[i][k] = exists ? t.mean[part.at(i, k)] : 0.0f;", "t.mean[part.at(i, k)]", [LESS, NONE]),
    ("kernels/fused/fused_tile.cuh", "inverse[i][k] = exists ? t.inverse[part.at(i, k)] : 0.0f;", "t.inverse[part.at(i, k)]", BOTH),
    ("kernels/fused/fused_tile.cuh", "own[e] += w * w;", "w * w", BOTH + [("by the identity", "by.inverse[i][k] * by.inverse[i][k] * (from * d[k] * (from * d[k]) - 2.0f * (from * d[k]) * by.mean[i][k] + by.mean[i][k] * by.mean[i][k])")]),
    ("kernels/fused/fused_tile.cuh", "squares[warp * x.n + e] = sum;", "sum", BOTH + [("of the last warp alone", "warp == 7 ? x : 0.0f")]),
    ("kernels/fused/fused_tile.cuh", "sums[i][k] += rounded_product(scales[e], w);", "scales[e]", BOTH + [("the first row's", "scales[0] + 0.0f * x")]),
    ("kernels/fused/fused_mlp.cuh", "if (lane == 0) scales[e] = factors[0] * inverse_grid;", "factors[0]", BOTH),
    ("kernels/fused/fused_mlp.cuh", "squares[layer] += layer_squares[(layer * (kFusedThreads / kWarp) + warp) * x.n + e];", "layer_squares[(layer * (kFusedThreads / kWarp) + warp) * x.n + e]", BOTH + [("of the last layer alone", "layer == kLayers - 1 ? x : 0.0f")]),
    # Layers for texts on CUDA: recurrent, their gradients, embeddings, means.
    ("kernels/layers/recurrent.cuh", "length[i] = i < a.plan.examples && first + i < live ? a.length[first + i] : 0;", "a.length[first + i]", [BEFORE]),
    ("kernels/layers/recurrent.cuh", "weights[i] = k < a.hidden ? from[row * a.hidden + k] : 0.0f;", "from[row * a.hidden + k]", BOTH),
    ("kernels/layers/recurrent.cuh", "slab[4 * i + k] = is_row && column + k < a.hidden ? at[k] : 0.0f;", "at[k]", [LESS]),
    ("kernels/layers/recurrent.cuh", "copy_four_async(slab + 4 * i, is_row && column < a.hidden ? at : from,", "4 * i", [("to the slab's beginning", "0 * x")]),
    ("kernels/layers/recurrent.cuh", "turn ^= 1;", "1", [("always the same slab", "0 * x")]),
    ("kernels/layers/recurrent.cuh", "return is_reverse ? length[e] - 1 - s : s;", "length[e] - 1 - s", [("both directions forwards", "s + 0 * x")]),
    ("kernels/layers/recurrent.cuh", "sum[g][n] += u.v[i] * h[i].v[n];", "h[i].v[n]", BOTH),
    ("kernels/layers/recurrent.cuh", "const int length = b.length[b.own(n)];\n        if (s >= length) continue;\n", "b.length[b.own(n)]", [BEFORE]),
    ("kernels/layers/recurrent.cuh", "const float c = u.state(kept);", "u.state(kept)", [LESS, NONE]),
    ("kernels/layers/recurrent.cuh", "sum[2] + state_bias[2]};", "state_bias[2]", [LESS, NONE]),
    ("kernels/layers/recurrent.cuh", "h += b.total[at];", "b.total[at]", [LESS, NONE]),
    ("kernels/layers/recurrent.cuh", "h /= static_cast<float>(length);", "static_cast<float>(length)", BOTH),
    ("kernels/layers/recurrent.cuh", "s == length - 1) *b.output(n, s, j) = h;", "length - 1", NUMBERS),
    ("kernels/layers/recurrent.cuh", "b.length[b.own(n)] == 0) *b.output(n, 0, j) = 0.0f;", "0.0f", [("a text without words gives 1", "x + 1.0f")]),
    ("kernels/layers/recurrent.cuh", "states[b.line(n, s - 1) * hidden + j]", "s - 1", [NEXT]),
    ("kernels/layers/recurrent.cuh", "a.output != device::StatesOut::last || s == length - 1;", "length - 1", NUMBERS),
    ("kernels/layers/recurrent.cuh", "dy[n] /= static_cast<float>(length);", "static_cast<float>(length)", BOTH),
    ("kernels/layers/recurrent.cuh", "dh[n] += u * d.v[n];", "d.v[n]", BOTH),
    ("kernels/layers/recurrent.cuh", "dh[n] += dy[n];", "dy[n]", BOTH),
    ("kernels/layers/recurrent.cuh", "float through = dh + carry;", "carry", [LESS, NONE]),
    ("kernels/layers/recurrent.cuh", "carry = through;", "through", BOTH),
    ("kernels/layers/recurrent.cuh", "delta[Cell::delta(g)];", "Cell::delta(g)", [("a GRU's last gate by its inputs", "0 * x + g")]),
    ("kernels/layers/recurrent_tensor.cuh", "weights[i] = row < rows && k < a.hidden ? to_tf32(from[row * a.hidden + k]) : 0.0f;", "from[row * a.hidden + k]", BOTH),
    ("kernels/layers/recurrent_tensor.cuh", "const int row = back ? term + line : gate * a.hidden + round + of;", "gate * a.hidden + round + of", [NEXT]),
    ("kernels/layers/recurrent_tensor.cuh", "const int row = back ? term + line : gate * a.hidden + round + of;", "term + line", [NEXT]),
    ("kernels/layers/recurrent_tensor.cuh", "const int column = (back ? round : term) + within;", "(back ? round : term)", [("the first slab's columns", "0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "copy_four_async(slab + at, is_there ? source : from, is_there);", "at", [("to the slab's beginning", "0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "slab[at + i] = row >= 0 && column + i < a.hidden ? source[i] : 0.0f;", "source[i]", [LESS]),
    ("kernels/layers/recurrent_tensor.cuh", "{ here[at + i] = to_tf32(here[at + i]); }", "to_tf32(here[at + i])", [LESS, ("slabs are not rounded", "here[at + i] + 0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "turn ^= 1;", "1", [("always the same slab", "0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "int next_term = term + slab_terms;", "term + slab_terms", [("the same slab again", "term + 0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "const int here = (a.plan.is_resident ? round : 0) + unit;", "round", [("the first units again", "0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "own_numbers[(term + step + 4 * i) * pitch + 8 * tile]", "term + step + 4 * i", [("the first four terms twice", "term + step + 0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "own_numbers[(term + step + 4 * i) * pitch + 8 * tile]", "8 * tile", [("the first eight texts twice", "0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "const int first = p * units * weight_pitch + step * (back ? weight_pitch : 1);", "p * units * weight_pitch", [("one gate for all", "0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "const int place = is_reverse ? own_length[n] - 1 - s : s;", "own_length[n] - 1 - s", [("both directions forwards", "s + 0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "{ sum[g] = sums[g][u][n]; }", "sums[g][u][n]", BOTH),
    ("kernels/layers/recurrent_tensor.cuh", "after[at] = to_tf32(h);", "to_tf32(h)", BOTH + [("states are not rounded", "h + 0 * x")]),
    ("kernels/layers/recurrent_tensor.cuh", "h += total[n][u];", "total[n][u]", [LESS, NONE]),
    ("kernels/layers/recurrent_tensor.cuh", "if (s == length - 1) h /= static_cast<float>(length);", "static_cast<float>(length)", BOTH),
    ("kernels/layers/recurrent_tensor.cuh", "if (a.output != device::StatesOut::last || s == length - 1)", "length - 1", NUMBERS),
    ("kernels/layers/recurrent_tensor.cuh", "b.output_at(n, 0)[place] = 0.0f;", "0.0f", [("a text without words gives 1", "x + 1.0f")]),
    ("kernels/layers/recurrent_tensor.cuh", "b.at_step(n, s - 1, round, hidden) : 0;", "s - 1", [NEXT]),
    ("kernels/layers/recurrent_tensor.cuh", "a.output != device::StatesOut::last || s == b.own_length[n] - 1);", "b.own_length[n] - 1", NUMBERS),
    ("kernels/layers/recurrent_tensor.cuh", "from_output /= static_cast<float>(b.own_length[n]);", "static_cast<float>(b.own_length[n])", BOTH),
    ("kernels/layers/recurrent_tensor.cuh", "if (b.must_wait()) __syncthreads();", "b.must_wait()", [("deltas are replaced while others read them", "false && x")]),
    ("kernels/layers/recurrent_tensor.cuh", "step_back<Cell>(sums[0][u][n] + from_output,", "sums[0][u][n]", BOTH),
    ("kernels/layers/recurrent_tensor.cuh", "to_tf32(gate[n][u][Cell::delta(g)]);", "Cell::delta(g)", [("a GRU's last gate by its inputs", "0 * x + g")]),
    ("kernels/layers/recurrent_batch.cuh", "y[(is_reverse ? length - 1 - s : s) * channels + c];", "(is_reverse ? length - 1 - s : s)", [("the first state alone", "0 * x")]),
    ("kernels/layers/recurrent_batch.cuh", "if (length > 0) state /= static_cast<float>(length);", "static_cast<float>(length)", BOTH),
    ("kernels/layers/recurrent_batch.cuh", "state = y[(is_reverse ? 0 : length - 1) * channels + c];", "length - 1", [BEFORE]),
    ("kernels/layers/recurrent_batch.cuh", "state = y[(is_reverse ? 0 : length - 1) * channels + c];", "0", [NEXT]),
    ("kernels/layers/recurrent_batch.cuh", "} else if (length > 0) {", "length", [("an empty text as one word", "x > 0 ? x : 1")]),
    ("kernels/products/sequence_gradient.cuh", "tile.template multiply<true>(half, sums, has_bias());", "has_bias()", [("tensor cores without biases", "false && x")]),
    ("runtime/device/cuda/layers/recurrent.hpp", "of_states.x_shift = d == 0 ? -1 : 1;", "d == 0 ? -1 : 1", [("states of the same step", "0 * x")]),
    ("runtime/device/cuda/layers/recurrent.hpp", "of_states.bias += 2 * units;", "2 * units", [BEFORE]),
    ("runtime/device/cuda/layers/token_dense.hpp", ".bias = tensor(1)});", "tensor(1)", [BEFORE]),
    ("kernels/products/sequence_gradient.cuh", "row = within % down * T::kRows;", "within % down", [NONE]),
    ("kernels/products/sequence_gradient.cuh", "column = within / down * T::kColumns;", "within / down", [NONE]),
    ("kernels/products/sequence_gradient.cuh", "bool has_bias() const { return part.bias >= 0 && row == 0; }", "row == 0", [("a bias by every tile of rows", "true || x")]),
    ("kernels/products/sequence_gradient.cuh", "const int place = t + part.x_shift;", "part.x_shift", NUMBERS),
    ("kernels/products/sequence_gradient.cuh", "return t < length && place >= 0 && place < length", "place < length", [("states behind the end", "place <= length || x")]),
    ("kernels/products/sequence_gradient.cuh", "carry_a.take(x.data, at + T::kTerms, find_a);", "at + T::kTerms", [("the first terms again", "0 * x")]),
    ("kernels/products/sequence_gradient.cuh", "square = sums.square(at.holds_bias());", "at.holds_bias()", [("norms without biases", "false && x")]),
    ("kernels/products/sequence_gradient.cuh", "units.cell[m][n] += saturated_product(scale, one.cell[m][n]);", "one.cell[m][n]", BOTH),
    ("kernels/products/sequence_gradient.cuh", "units.column[n] += saturated_product(scale, one.column[n]);", "one.column[n]", BOTH),
    ("kernels/products/sequence_gradient.cuh", "(v - a.transform.mean[i]) * a.transform.inverse[i]);", "a.transform.mean[i]", [LESS, NONE]),
    ("kernels/products/sequence_gradient.cuh", "add_sequence(a, at, factor * inverse_grid, one, units);", "factor", BOTH),
    ("kernels/layers/embedding.cuh", "a.own_length[e] = length;", "length", [BEFORE]),
    ("kernels/layers/embedding.cuh", "table[word * columns + (i - t * columns)]", "word * columns", NUMBERS),
    ("kernels/layers/embedding.cuh", "if (i > 0 && text.word(i - 1) == word) continue;", "text.word(i - 1) == word", [("a word as often as it stands", "false && x")]),
    ("kernels/layers/embedding.cuh", "while (end < length && text.word(end) == word) ++end;", "text.word(end) == word", [("a word's first place alone", "false && x")]),
    ("kernels/layers/embedding.cuh", "square += row * row;", "row * row", BOTH),
    ("kernels/layers/embedding.cuh", "saturated_product(scale, row)", "row", BOTH),
    ("kernels/layers/embedding.cuh", "factor * a.scale->inverse_grid : 0.0f;", "factor", BOTH),
    ("kernels/layers/mean_over_time.cuh", "return 1.0f / static_cast<float>(length > 1 ? length : 1);", "static_cast<float>(length > 1 ? length : 1)", BOTH),
    ("kernels/layers/mean_over_time.cuh", "sum += x[t * channels + c];", "x[t * channels + c]", BOTH),
    ("kernels/layers/mean_over_time.cuh", "const float norm = sqrtf(block_sum(square, partial));", "block_sum(square, partial)", BOTH),
    ("kernels/layers/mean_over_time.cuh", "d = (d - along * y[a.y_planes.at(c, 0, 0)])", "along", [LESS, NONE]),
    # Ranks: the neighbour's range, an example in two of them, sums that are left out, another step.
    ("runtime/data/share.hpp", "return {at(rank), at(rank + 1)};", "at(rank)", [("the neighbour's range too", "x > 0 ? x - kRangeTile : x")]),
    ("runtime/data/share.hpp", "return {at(rank), at(rank + 1)};", "at(rank + 1)", [("an example in two ranges", "x < examples ? x + 1 : x"), ("an example in none", "x > 0 ? x - 1 : x")]),
    ("runtime/data/range.cpp", "std::clamp(range_.begin, taken_, taken_ + block.size());", "range_.begin", [("an example in none, of a table", "x + 1"), ("an example in two ranges, of a table", "x > 0 ? x - 1 : x")]),
    ("runtime/data/range.cpp", "const bool keeps = at >= range_.begin && at < range_.end;", "range_.end", [("an example in two ranges, held out", "x + 1")]),
    ("runtime/data/cifar.cpp", "reader.skip(range.begin * kRecord);", "range.begin", [("the first records for all", "0 * x")]),
    ("runtime/data/images.cpp", "first += records[i], ++i)", "records[i]", [("each file begins the set", "0 * x")]),
    ("runtime/data/glyphs.cpp", "make_glyphs(kGlyphSeed, first + range.begin, range.size());", "range.begin", [("the first images for all", "0 * x")]),
    ("runtime/data/sentences.cpp", "for (std::size_t i = first + range.begin; i < first + range.end; ++i) {", "range.end", [("a sentence in two ranges", "x + 1")]),
    ("runtime/device/cpu/cpu_engine.cpp", "settings_.ranks->sum(\"the sum of a step\", {sum_.data(), sum_.size()});", "sum_.size()", [("RANKS: half of the sum is left out", "x / 2")]),
    ("runtime/device/cpu/cpu_engine.cpp", "                             .first = first});", "first", [("RANKS: places of the whole set", "0 * x")]),
    ("runtime/device/cpu/worker.cpp", "const auto in_whole = static_cast<std::int64_t>(w_.data->first + number);", "w_.data->first", [("RANKS: the first range's words for all", "0 * x")]),
    ("runtime/device/joined_linear.hpp", "sum_multiples(ranks_, what, sums, linear_grid(bound, max_examples_));", "max_examples_", [("RANKS: another grid", "1e9 * x")]),
    ("runtime/device/cuda/ranked_sum.hpp", "gpu_.sum_over_ranks(sum(), words_);", "words_", [("DEVICES: the all-reduce is left out", "0 * x"), ("DEVICES: the last word is left out", "x - 1"), ("DEVICES: half of the sum is left out", "x / 2")]),
    ("runtime/device/rank_sums.cpp", "if (libraries[r] != libraries[0])", "libraries[r]", [("DEVICES: another version is not seen", "libraries[0]")]),
    ("runtime/device/rank_sums.hpp", "if (tried[i] != tried_sum(ranks.size(), i))", "tried[i]", [("DEVICES: the tried sum is not looked at", "tried_sum(ranks.size(), i)")]),
    ("runtime/methods/dpis.cpp", "ranks().sum(name, {&sum, 1});", "1", [("RANKS: the total of the norms is left out", "0 * x")]),
    ("runtime/training/training.cpp", "step_ = method_->train(order.step, order.until);", "order.step", [("RANKS: noise of another step", "x + 1")]),
    ("runtime/training/training.cpp", "step_ = method_->train(order.step, order.until);", "order.until", [("RANKS: one step more", "x + 1")]),
    ("runtime/run/follow.cpp", "if (one.starts_with(code + \" \"))", "one.starts_with(code + \" \")", [("RANKS: a refusal shows the codes of rows", "false && x")]),
    ("runtime/run/follow.cpp", "Seal(key).tag(\"rows\", fmt::format(\"{} {}\", train.whole_size(), e.data.test.whole_size()));", "train.whole_size()", [("RANKS: the number of rows is not compared", "0 * x")]),
    ("runtime/training/order.cpp", "if (!is_by_example(name)) add(array.data(), array.size() * sizeof(float));", "array.size() * sizeof(float)", [("the model is not compared", "0 * x")]),
]

# Survivors that harm nothing, and why.
# What settings of a hundred rows cannot show, and the tests that look for it instead: file, expression, kind.
OTHER_TESTS = {
    # Slabs whose rows are no whole fours: of a small device's shared memory.
    ("kernels/layers/recurrent.cuh", "at[k]", LESS): "CudaTexts.BitsDoNotDependOnTheDevice",
    # A part of a sum that stays in 32 bits until the end: of thousands of rows.
    ("runtime/device/cpu/linear_sum.cpp", "bias_ + kColumnBlock", "without the bias"): "*CodedEngine.ManyRows*",
    # The first steps of AdaCliP clip nearly every gradient, whatever it was multiplied by.
    ("runtime/device/cpu/worker.cpp", "weight", MORE): "*ClassWeightsOnTables.ASum*",
    # The first rows of a table alone.
    ("kernels/step/sample_cpu.cpp", "first / 2", "the first examples' words for all"): "*Sampl*",
    # One number in 65,536 is told apart by these bits.
    ("kernels/step/sample_cpu.cpp", "(a.threshold & 0xffff)", LESS): "*Sampl*",
    ("kernels/step/sample_cpu.cpp", "(a.threshold & 0xffff)", MORE): "*Sampl*",
    ("kernels/step/sample_cpu.cpp", "a.threshold >> 16", NEXT): "*Sampl*",
    ("kernels/step/sample_cpu.cpp", "a.threshold >> 16", BEFORE): "*Sampl*",
    ("kernels/step/sample_cpu.cpp", "kLowerBits", "the upper bits again"): "*Sampl*",
    # Random tables have no such cells, and what is used of a table is what the oracle is given.
    ("runtime/data/first_rows.cpp", "row.malformed || is_missing(schema_, schema_.columns[column_], unit)", "rows that cannot be read are a unit of their own"): "UnitsOfATable*",
    ("runtime/data/first_rows.cpp", "unit", "a unit that is missing is one"): "UnitsOfATable*",
    ("runtime/methods/norm_bound.cpp", "static_cast<double>(network.spec.huber)", "half of a Huber loss's slope"): "NormBound*",
    ("runtime/device/cpu/worker.cpp", "std::holds_alternative<AddAccepted>(use)", "candidates are accepted without their class's weight"): "ClassWeights.Candidates*",
    ("runtime/results/holdout_figures.cpp", "powers[j]", LESS): "HoldoutFigures*",
    ("runtime/results/holdout_figures.cpp", "powers[j]", MORE): "HoldoutFigures*",
    ("runtime/results/holdout_figures.cpp", "powers[j]", "a row of no prediction counts twice"): "HoldoutFigures*",
    # Random tables have no such cells.
    ("runtime/data/row_encoder.cpp", "malformed_ == Malformed::missing", "a cell that cannot be read is refused"): "*MalformedRows*",
}

# Files of kernels that tests of their own look at, example by example; after a space, others where those find nothing.
TESTS_OF_FILES = {
    "runtime/data/share.hpp": "*RankedEngine*:RankedTraining*",
    "runtime/data/range.cpp": "Ranges*",
    "runtime/data/cifar.cpp": "Ranges*",
    "runtime/data/images.cpp": "Ranges*",
    "runtime/data/glyphs.cpp": "Ranges*",
    "runtime/data/sentences.cpp": "Ranges*",
    "runtime/run/follow.cpp": "RankedTraining*",
    "runtime/training/order.cpp": "RankedTraining*",
    "kernels/contribution/coordinates_math.hpp": "All/FusedTransformed*",
    "kernels/fused/fused_total.cuh": "All/FusedTransformed*",
    "kernels/fused/fused_tile.cuh": "All/FusedTransformed*",
    "kernels/fused/fused_cnn.cuh": "All/FusedTransformed*",
    "kernels/fused/fused_mlp.cuh": "All/FusedTransformed*",
    "kernels/layers/recurrent.cuh": "Cuda/TextEngine*:CudaTexts.ThePreset*",
    "kernels/layers/recurrent_tensor.cuh": "Cuda/TextEngineTensors.Layers* Cuda/TextEngineTensors*:CudaTexts.BitsDo*",
    "kernels/layers/recurrent_batch.cuh": "CudaTexts.ALibrary*",
    "kernels/layers/embedding.cuh": "Cuda/TextEngine*:CudaTexts.ThePreset*",
    "kernels/layers/mean_over_time.cuh": "Cuda/TextEngine*:CudaTexts.ThePreset*",
    "kernels/products/sequence_gradient.cuh": "Cuda/TextEngine*:CudaTexts.ThePreset*",
    "runtime/device/cuda/layers/recurrent.hpp": "Cuda/TextEngine*:CudaTexts.ThePreset*",
    "runtime/device/cuda/layers/token_dense.hpp": "Cuda/TextEngine*:CudaTexts.ThePreset*",
}

HARMLESS = {
    # Noise for a unit of one row more than is certified.
    ("runtime/methods/make_plan.cpp", "size.unit_rows", NEXT),
    # The gate asks the ledger again for every release before its noise, and charges what was not charged ahead.
    ("runtime/methods/engine_method.cpp", "end", BEFORE),
    # A second lock: no run takes what was charged ahead twice (tests/runtime/gate holds that it could not).
    ("runtime/gate/privacy_budget.cpp", "charge.count", BEFORE),
    # The gate asks for the step before too: a run authorises all its steps before the first is made.
    ("runtime/methods/engine_method.cpp", "ledger_index(step)", BEFORE),
    # Each generation's noise is of its own number, whichever.
    ("runtime/methods/privgene.cpp", "generation", NEXT),
    ("runtime/methods/privgene.cpp", "generation", BEFORE),
    # Less of the budget is used, more noise drawn, and that is what is certified.
    ("runtime/methods/output_perturbation.cpp", "all * all", LESS),
    # It spends more than the budget, and no run is begun.
    ("runtime/methods/output_perturbation.cpp", "all * all", MORE),
    # Whoever is a candidate is accepted with what its probability lacks: it is drawn as often as before.
    ("runtime/methods/dpis.cpp", "options().floor", LESS),
    ("runtime/methods/dpis.cpp", "options().floor", MORE),
    # What an example adds is stated a tenth too large: more noise, and all that is certified stays true.
    ("kernels/contribution/contribution.hpp", "clip_norm", MORE),
    # However a gradient is transformed, it is clipped to length 1 afterwards.
    ("runtime/device/cpu/coordinates.cpp", "scale_.root", LESS),
    ("runtime/device/cpu/coordinates.cpp", "scale_.root", MORE),
    ("runtime/device/cpu/coordinates.cpp", "mean[j]", LESS),
    ("runtime/device/cpu/coordinates.cpp", "mean[j]", MORE),
    # One number decides what is charged and what is drawn: another schedule of noise, paid for as it is.
    ("runtime/methods/adp_sgd.cpp", "step", NEXT),
    ("runtime/methods/dp_agd.cpp", "rho", LESS),
    ("runtime/methods/dp_agd.cpp", "rho", MORE),
    ("runtime/methods/dp_agd.cpp", "settings_.rho_selection", LESS),
    ("runtime/methods/dp_agd.cpp", "settings_.rho_selection", MORE),
    ("runtime/methods/dpis.cpp", "epoch_.sigma", LESS),
    ("runtime/methods/dpis.cpp", "epoch_.sigma", MORE),
    # A larger public total is another rate and another noise, charged as they are; a smaller one is refused.
    ("runtime/methods/dpis.cpp", "clip", MORE),
    ("runtime/methods/dpis.cpp", "clip", LESS),
}

HEADER = """#pragma once
// Written by scripts/faults.py.
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
namespace cudp {
struct AwakeFault {
  int place = -1;
  std::string kind;
};
inline const AwakeFault& awake_fault() {
  static const AwakeFault awake = [] {
    AwakeFault f;
    if (const char* text = std::getenv("CUDP_FAULT")) {
      f.place = std::atoi(text);
      f.kind = std::strchr(text, ':') + 1;
    }
    return f;
  }();
  return awake;
}
template <class T>
T fault(int place, T x) {
  const AwakeFault& awake = awake_fault();
  if (awake.place != place) return x;
  if constexpr (std::is_arithmetic_v<T>) {
    if (awake.kind == "x0.9") return static_cast<T>(static_cast<double>(x) * 0.9);
    if (awake.kind == "x1.1") return static_cast<T>(static_cast<double>(x) * 1.1);
    if (awake.kind == "+1") return static_cast<T>(x + T(1));
    if (awake.kind == "-1") return x > T(0) ? static_cast<T>(x - T(1)) : x;
    if (awake.kind == "0") return T(0);
  }
  return x;
}
template <class T, class F>
T fault_as(int place, const char* kind, T x, F change) {
  const AwakeFault& awake = awake_fault();
  return awake.place == place && awake.kind == kind ? static_cast<T>(change(x)) : x;
}
}  // namespace cudp
"""


# The tests that look for faults, alone: the others would take long to build.
TESTS = """
add_executable(cudp_fault_tests audit/random_settings_test.cpp audit/random_settings_neighbours_test.cpp runtime/device/coded_engine_test.cpp
  runtime/device/class_weights_test.cpp kernels/sample_test.cpp kernels/cuda_fused_test.cpp
  runtime/data/table_reader_test.cpp runtime/data/ranges_test.cpp runtime/data/units_test.cpp runtime/methods/norm_bound_test.cpp
  runtime/results/holdout_figures_test.cpp support/test_files.cpp runtime/ranks/ranked_engine_test.cpp runtime/ranks/ranked_training_test.cpp runtime/ranks/ranked_cuda_test.cpp
  runtime/device/text_engine_test.cpp support/distributions.cpp support/fill_scratch.cpp
  support/recomputed_clipping.cpp support/recomputed_coordinates.cpp support/recomputed_importance.cpp
  support/recomputed_linear.cpp support/recomputed_statistics.cpp support/recomputed_sums.cpp support/simt/emulator.cpp support/test_device.cpp)
target_link_libraries(cudp_fault_tests PRIVATE cudp_emulated_cuda cudp_runtime CLI11::CLI11 GTest::gtest_main)
target_include_directories(cudp_fault_tests PRIVATE support/simt)
"""


class Fault:
    """A place, and how its expression is changed."""

    def __init__(self, place, kind):
        self.place = place
        self.file, _, self.expression, _, *reached = PLACES[place]
        self.kind, self.code, *own = (kind, None) if isinstance(kind, str) else kind
        self.key = (self.file, self.expression, self.kind)
        self.reached_with = own[0] if own else reached[0] if reached else AREAS.get(self.file, "")
        if not re.search("data=|model=|features=", self.reached_with):
            self.reached_with += ("," if self.reached_with else "") + "data=table"  # the fastest

    def __str__(self):
        return f"{self.kind} {self.file}: {self.expression}"


# Where all places of a file are reached by settings of one kind alone.
AREAS = {
    "runtime/methods/dpsgd_quantile.cpp": "method=dpsgd-quantile",
    "runtime/methods/adp_sgd.cpp": "method=adp-sgd",
    "runtime/methods/dpis.cpp": "method=dpis",
    "runtime/methods/dp_agd.cpp": "method=dp-agd",
}


def changed_sources():
    """The text of every file by its name, with all faults in it."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {}
    for name in files.stdout.split("\n"):
        if name and (ROOT / name).is_file():
            texts[name] = (ROOT / name).read_bytes()
    places = {}
    for number, (name, text, expression, kinds, *_) in enumerate(PLACES):
        source = texts[name].decode()
        if source.count(text) != 1:
            sys.exit(f"faults.py: expected once in {name}, found {source.count(text)} times: {text}")
        at = source.index(text)
        word = re.search(r'(?<![\w.>"])' + re.escape(expression) + r"(?![\w(])", text)
        if word is None:
            sys.exit(f"faults.py: expected {expression} in: {text}")
        scope = "cudp::" if re.search(r"\bfault\(", source) else ""  # a file with a fault() of its own
        before, after = f"{scope}fault({number}, ", ")"
        for kind in kinds:
            if isinstance(kind, str):
                continue
            before = f'{scope}fault_as({number}, "{kind[0]}", ' + before
            after += f", [&]([[maybe_unused]] auto x) {{ return {kind[1]}; }})"
        places.setdefault(name, []).append((at + word.start(), at + word.end(), before, after))
    for name, spots in places.items():
        source = texts[name].decode()
        # Inner ones first; of equal ones the later is around the earlier.
        spots.sort(key=lambda spot: spot[1] - spot[0])
        for i, (begin, end, before, after) in enumerate(spots):
            source = source[:end] + after + source[end:]
            source = source[:begin] + before + source[begin:]
            for k in range(i + 1, len(spots)):
                first, last, *texts_of = spots[k]
                # What stands behind the inserted text moves; what is around it grows.
                first += (len(before) if first > begin else 0) + (len(after) if first >= end else 0)
                last += (len(before) if last > begin else 0) + (len(after) if last >= end else 0)
                spots[k] = (first, last, *texts_of)
        pragma = "#pragma once\n"
        head = '#include "faults.hpp"\n'
        source = source.replace(pragma, pragma + head, 1) if source.startswith(pragma) else head + source
        texts[name] = source.encode()
    texts["tests/CMakeLists.txt"] += TESTS.encode()
    texts["faults.hpp"] = HEADER.encode()
    return texts


def copy_sources():
    sources = changed_sources()
    for path in SOURCES.rglob("*"):
        if path.is_file() and str(path.relative_to(SOURCES)) not in sources:
            path.unlink()  # of an older copy
    for name, content in sources.items():
        path = SOURCES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def all_faults():
    return [Fault(place, kind) for place, entry in enumerate(PLACES) for kind in entry[3]]


def chosen(words):
    """Numbers of the faults that the command line asks for."""
    faults = all_faults()
    if not words:
        return range(len(faults))
    if words[0].isdigit():
        return range(int(words[0]), (int(words[1]) if len(words) > 1 else int(words[0])) + 1)
    return [n for n, fault in enumerate(faults) if any(word in str(fault) for word in words)]


def is_caught(fault, build):
    """What finds it, and among how many settings; None where nothing does."""
    most = int(os.environ.get("FAULT_SETTINGS", "60"))
    attempts = [("RandomSettings.Train*", 4), ("RandomSettings.Train*", most), ("RandomSettings.Other*", 4 * most)]
    if "N in metrics" in fault.kind:
        attempts.reverse()  # what other rows show
    other = OTHER_TESTS.get(fault.key, TESTS_OF_FILES.get(fault.file))
    if fault.kind.startswith("DEVICES"):
        other = "RankedCudaSums*:*RankedCuda*fused_mlp_on_devices"
    if fault.kind.startswith("RANKS"):
        other = "*RankedEngine*:RankedTraining*"
    if other is not None:
        attempts = [(tests, 1) for tests in other.split()]
    looked_at = 0
    for tests, count in attempts:
        environment = dict(os.environ, CUDP_FAULT=f"{fault.place}:{fault.kind}", CUDP_FIRST_FAULT="1",
                           CUDP_SETTINGS=str(count), CUDP_SETTINGS_WITH=fault.reached_with)
        run = subprocess.run([build / "tests/cudp_fault_tests", "--gtest_brief=1", "--gtest_filter=" + tests],
                             env=environment, capture_output=True, text=True, cwd=build)
        if run.returncode != 0:
            found = re.search(r"Failure\n(?:Failed\n)?(.*)", run.stdout)
            return found.group(1) if found else run.stdout[-200:].replace("\n", " ") or f"ended with {run.returncode}"
        looked_at += sum(map(int, re.findall(r"looked at (\d+)", run.stdout)))
    if looked_at == 0 and other is None and fault.key not in HARMLESS:
        sys.exit(f"faults.py: no setting with {fault.reached_with} trains, of {most}: {fault}")
    return None


def main():
    words = sys.argv[1:]
    faults = all_faults()
    if words == ["list"]:
        changed_sources()  # a place that is no longer there is said
        for number, fault in enumerate(faults):
            print(f"{number:3} {fault}")
        return
    copy_sources()
    build = BUILD / "build"
    subprocess.run(["cmake", "-S", SOURCES, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DCUDP_CUDA=OFF", "-DCUDP_TESTS=ON", "-DCUDP_BENCH=OFF", "-DCUDP_UNITY=ON"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "cudp_fault_tests"], check=True)
    numbers = chosen(words)
    survivors = 0
    for number in numbers:
        fault = faults[number]
        found = is_caught(fault, build)
        argued = fault.key in HARMLESS
        survivors += found is None and not argued
        word = "caught  " if found else "harmless" if argued else "SURVIVED"
        print(f"{number:3} {word} {fault}" + (f"  [{found[:110]}]" if found else ""), flush=True)
    print(f"{len(numbers)} faults, {survivors} survived")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
