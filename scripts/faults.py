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

# To write a new fault, add a row: the file, the function, the expression in it that is changed, how it
# is changed, and, if few settings reach the place, those that do.
#   function    its name, `take`, or `Class::take` if functions of one name have the same expression
#   expression  C++ that occurs once in the function; if it occurs again, with what stands before or
#               behind it, and itself between two @: "noise_std = @sigma@". Spaces and line ends do not
#               matter.
#   how         a list of x0.9, x1.1, +1, -1 and 0, or of (a name, C++ of x, which is the expression)
#   settings    KEY=VALUE with commas, as CUDP_SETTINGS_WITH in tests/audit/settings_search.hpp
# `scripts/faults.py list` checks that each place is found exactly once. What moves to another file or
# function, or changes its expression, needs a change here; what moves or changes around it does not.
#
# FIFTEEN: those that tests were once asked to catch, of which five were not.
PLACES = [
    ("runtime/methods/plan.cpp", "draw", "Poisson{@sampling_threshold@", BOTH + NUMBERS + [("FIFTEEN: sampling rate x 1.1 where the size is private", "count_epsilon == 0.0 ? x : x * 11 / 10")]),
    ("runtime/methods/plan.cpp", "draw", "Allocation{@epoch_steps@", NUMBERS, "sampling=allocation"),
    ("runtime/methods/plan.cpp", "allocated_releases", "plan.noise_multiplier", BOTH, "sampling=allocation"),
    ("runtime/methods/plan.cpp", "allocated_releases", "plan.releases_until(last)", NUMBERS, "sampling=allocation"),
    ("runtime/device/batch_draws.cpp", "allocate", "stream(Stream::allocation, @number@", [("places that are kept over epochs", "0 * x")], "sampling=allocation,device=cpu"),
    ("runtime/device/batch_draws.cpp", "draw_allocated", "step % allocation.steps", [("the next step's batch", "(x + 1) % allocation.steps")], "sampling=allocation,device=cpu"),
    ("runtime/methods/schedule.cpp", "at", "float_below(plan_.clip_norm)", [MORE]),
    ("runtime/methods/engine_method.cpp", "fresh_key", "ledger_index(step)", [NEXT] + [("FIFTEEN: repeated steps are not charged after --fresh-noise", "budget.ledger().authorised_until() + 0 * x", "method=dpsgd-quantile,ending=fresh noise")]),
    ("runtime/methods/engine_method.cpp", "authorise", "step, @end@", [BEFORE]),
    ("runtime/methods/engine_method.cpp", "charge_of", "ledger_index(step)", NUMBERS, "method=dpsgd-quantile"),
    ("runtime/methods/engine_method.cpp", "promise", "plan_.sampling_rate()", BOTH),
    ("runtime/methods/engine_method.cpp", "promise", "plan_.sampling_threshold", BOTH + NUMBERS),
    ("runtime/methods/engine_method.cpp", "promise", "@plan_.noise_multiplier@;", BOTH),
    ("runtime/methods/engine_method.cpp", "promise", "clip_norm = @plan_.clip_norm@", BOTH),
    ("runtime/methods/engine_method.cpp", "promise", "sensitivity = @plan_.sensitivity@", BOTH),
    ("runtime/methods/engine_method.cpp", "promise", "plan_.noise_multiplier * plan_.sensitivity", BOTH),
    ("runtime/methods/engine_method.cpp", "promise", "plan_.expected_batch", BOTH),
    ("runtime/methods/engine_method.cpp", "promise", "steps_charged(ledger)", NUMBERS),
    ("runtime/methods/engine_method.cpp", "promise", "delta()", BOTH),
    ("runtime/methods/engine_method.cpp", "stated", "bound.epsilon", [LESS], "size-is-public="),
    ("runtime/methods/engine_method.cpp", "stated", "config().epsilon.value_or(kNoBound)", [LESS], "method=dpis"),
    ("runtime/methods/schedule.cpp", "at", "float_above(plan_.noise_std_at(step))", BOTH),
    ("runtime/methods/schedule.cpp", "at", "noise_std_at(@step@", NUMBERS, "method=dpsgd-decay"),
    ("runtime/methods/schedule.cpp", "at", "plan_.expected_batch", BOTH),
    ("runtime/methods/schedule.cpp", "at", "learning_rate(step)", BOTH),
    ("runtime/methods/schedule.cpp", "at", "learning_rate(@step@", [NEXT], "schedule=cosine"),
    ("runtime/methods/schedule.cpp", "at", "static_cast<double>(step) + 1.0", [NEXT], "optimizer=adam"),
    ("runtime/methods/schedule.cpp", "at", "std::fmin(c.ema, t / (t + 9.0))", BOTH, "ema=*"),
    ("runtime/methods/plan.hpp", "noise_std_at", "sensitivity", BOTH),
    ("runtime/methods/plan.hpp", "sampling_rate", "static_cast<double>(sampling_threshold)", BOTH),
    ("runtime/methods/plan.cpp", "noise_multiplier_at", "noise_multiplier * span->scale", BOTH, "method=dpsgd-decay"),
    ("runtime/methods/plan.cpp", "step_releases", "plan.noise_multiplier_at(first)", BOTH, "sigma=*,size-is-public="),
    ("runtime/methods/plan.cpp", "step_releases", "@first@)", [NEXT], "method=dpsgd-decay"),
    ("runtime/methods/plan.cpp", "step_releases", "end - first", NUMBERS),
    ("runtime/methods/make_plan.cpp", "plan_without_noise", "poisson_threshold(plan.expected_batch, @size.value@", BOTH),
    ("runtime/methods/make_plan.cpp", "plan_without_noise", "expected_batch = @batch@", BOTH),
    ("runtime/methods/make_plan.cpp", "plan_without_noise", "contribution, @plan.clip_norm@", [LESS]),
    ("runtime/methods/make_plan.cpp", "plan_without_noise", "*config.delta", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", "gradient_noise_multiplier", "plan().noise_multiplier", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", "count_noise", "plan().noise_multiplier", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", "count_release", "noise_std = @count_noise()@", BOTH + [("FIFTEEN: noise x 0.9 in the counts of dpsgd-quantile", "0.9 * x")]),
    ("runtime/methods/dpsgd_quantile.cpp", "count_release", "sensitivity = @0.5@", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", "count_release", "step = @t@", NUMBERS),
    ("runtime/methods/dpsgd_quantile.cpp", "rule", "gradient_noise_multiplier()", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", "rule", "plan().expected_batch", BOTH),
    ("runtime/methods/adp_sgd.cpp", "adp_noise", "steps_per_epoch, @step@", [NEXT]),
    ("runtime/methods/dpis.cpp", "noise_multiplier", "epoch_.sigma", BOTH),
    ("runtime/methods/dpis.cpp", "scalars", "noise_multiplier()", BOTH),
    ("runtime/methods/dpis.cpp", "scalars", "epoch_.total", BOTH),
    ("runtime/methods/dpis.cpp", "rule", "epoch_.total", BOTH),
    ("runtime/methods/dpis.cpp", "noisy_total", "noise = @plan().epoch_noise@", BOTH + [("FIFTEEN: noise x 0.9 in the totals of DPIS", "0.9 * x")]),
    ("runtime/methods/dpis.cpp", "noisy_total", "sensitivity = @max_norm@", BOTH + [("FIFTEEN: sensitivity x 0.9 in the totals of DPIS", "0.9 * x")]),
    ("runtime/methods/dpis.cpp", "noisy_total", "Gaussian{@plan().epoch_noise@", [MORE]),
    ("runtime/methods/dp_agd.cpp", "measure", "sqrt(2.0 * @rho@", BOTH),
    ("runtime/methods/dp_agd.cpp", "gradient_release", "Gaussian{@sigma@", [MORE]),
    ("runtime/methods/dp_agd.cpp", "iterate", "noisy_min_epsilon(@settings_.rho_selection@", BOTH),
    ("runtime/gate/gate.cpp", "release", "@r.noise_std@ /", BOTH),
    ("runtime/gate/gate.cpp", "release", "purpose, @r.step@", NUMBERS),
    ("runtime/gate/gate.cpp", "release", "stream, @s@", BOTH),
    ("runtime/gate/privacy_budget.cpp", "take", "charge.count", [BEFORE]),
    ("runtime/gate/privacy_budget.cpp", "authorise", "release.count", [BEFORE, NONE]),
    ("runtime/gate/privacy_budget.cpp", "fresh_key", "fresh_key(@number@", [NEXT], "ending=fresh noise"),
    ("runtime/methods/training_size.cpp", "training_size", "noise_std = @noise@", BOTH),
    ("runtime/methods/training_size.cpp", "training_size", "Gaussian{@noise@", [MORE]),
    ("runtime/methods/training_size.cpp", "training_size", "units_of(@n@", BOTH + NUMBERS),
    ("runtime/device/cpu/cpu_engine.cpp", "release", "grid, @scalars.noise_std@", BOTH),
    ("runtime/device/cpu/cpu_engine.cpp", "release", "noise_std = @scalars.noise_std@", BOTH),
    ("runtime/device/cpu/cpu_engine.cpp", "release", "noise, @step@", NUMBERS + [("FIFTEEN: with EMA each noise is used for two steps", "recipe.optimizer.keep_average ? x / 2 * 2 : x", "ema=*")]),
    ("runtime/device/batch_draws.cpp", "draw_each", "sampling, @step@", NUMBERS),
    ("runtime/device/batch_draws.cpp", "draw_each", "poisson->threshold", BOTH),
    ("runtime/device/cpu/cpu_engine.cpp", "take_step", "1.0 / grid", [MORE]),
    ("runtime/training/training.cpp", "charge_again", "@step_@); last_step_", [NEXT], "ending=fresh noise"),
    ("privacy/certificate/write.cpp", "noisy_values_json", "l.times", NUMBERS),
    ("privacy/certificate/write.cpp", "noisy_values_json", "l.noise_std", BOTH),
    ("privacy/certificate/write.cpp", "noisy_values_json", "l.sensitivity", BOTH),
    ("runtime/methods/releases_before.cpp", "releases_before", "size.noise", BOTH),
    ("runtime/methods/releases_before.cpp", "releases_before", "Gaussian{@noise@", BOTH, "features=pca"),
    # Where settings meet.
    ("runtime/methods/schedule.cpp", "at", "plan_.noise_std_at(step)",
     [("FIFTEEN: noise x 0.9 where per-layer clipping, Adam and EMA meet", "c.clipping == Clipping::per_layer && c.optimizer == OptimizerKind::adam && c.ema > 0.0 ? 0.9 * x : x", "clipping=per-layer,optimizer=adam,ema=*")]),
    ("runtime/training/training.cpp", "add", "with_holdout(row)", [("FIFTEEN: N in metrics.jsonl with several threads", "(x.epsilon += experiment_.config.threads > 1 ? 1e-3 * static_cast<double>(experiment_.data.train.size()) : 0.0, x)", "threads=*")]),
    ("runtime/methods/engine_method.cpp", "double", "plan.count_epsilon + guarantee(plan, done, coarseness).epsilon", [LESS]),
    # Norms and clipping.
    ("kernels/contribution/clip_math.hpp", "dense_squared_norm", "1.0f", [("FIFTEEN: norms without a bias", "0 * x")]),
    ("kernels/contribution/clip_math.hpp", "clip_factor", "clip.clip_norm", [LESS, ("FIFTEEN: automatic clipping x 1.1", "1.1f * x", "clipping=automatic")], "clipping=automatic"),
    ("kernels/contribution/clip_math.hpp", "clip_factor", "clip.stability", [NONE, ("x2", "2 * x")], "clipping=automatic"),
    ("kernels/contribution/clip_math.hpp", "clip_factors", "static_cast<float>(groups)", [LESS, NEXT], "clipping=per-layer"),
    ("kernels/contribution/clip_math.hpp", "clip_factor", "fill(bound) / @L::sqrt(square)@", BOTH),
    ("kernels/contribution/clip_math.hpp", "clip_factors", "squared_norms[g] : @total@", BOTH),
    ("kernels/contribution/clip_math.hpp", "clip_factors", "group_norm : @clip.clip_norm@", BOTH),
    ("runtime/device/cpu/layer.cpp", "gradient", "g, @size_@",
     [("FIFTEEN: norms without a GRU's second bias", "x - 16", "model=text-gru.toml"),
      ("FIFTEEN: norms without group norm", "x == 32 ? 0 * x : x", "model=image.toml"),
      ("norms without the bias of an LSTM", "x - 16", "model=text-lstm.toml"),
      ("norms without the bias of a convolution", "x > 32 ? x - 16 : x", "model=image.toml")]),
    ("runtime/device/cpu/layer.cpp", "add", "@factor@ *", BOTH, "data=images,model=image.toml"),
    ("runtime/device/cpu/layers/embedding.cpp", "gradient", "runs * stride()",
     [("FIFTEEN: norms without an embedding", "0 * x"), ("norms without a word's last numbers", "x - 16")], "data=texts"),
    ("runtime/device/cpu/layers/embedding.cpp", "add", "@factor@ *", BOTH, "data=texts"),
    ("runtime/device/cpu/layers/dense.cpp", "weigh", "dy[o] * @scale@", BOTH),
    ("runtime/device/cpu/layers/dense.cpp", "gradient", "dense_squared_norm(@x2@", [LESS, NONE]),
    ("runtime/device/cpu/layers/dense.cpp", "gradient", "x2, @dy2@", [LESS]),
    # Class weights, behind the clipping and before it.
    ("runtime/device/cpu/worker.cpp", "choose_factors", "f[g] *= @weight@", [MORE, ("left out", "0 * x + 1.0f")], "class-weights=*,model=mlp"),
    ("runtime/device/cpu/worker.cpp", "begin_backward", "gradient[i] *= @weight@", [MORE, ("left out", "0 * x + 1.0f")], "class-weights=*,method=adaclip"),
    ("runtime/device/cpu/worker.cpp", "begin_backward", "std::holds_alternative<AddAccepted>(use)", [("candidates are accepted without their class's weight", "false && x")], "class-weights=*,method=dpis"),
    ("runtime/methods/engine_method.cpp", "make_engine", "relative_class_weights(c.class_weights)", [("left out", "std::vector<float>(x.begin(), x.begin())")], "class-weights=*"),
    ("runtime/config/class_weights.cpp", "relative_class_weights", "w / largest", [LESS], "class-weights=*"),
    # Rows of a table by their codes.
    ("runtime/device/cpu/layers/dense.cpp", "gradient", "coded_square(w, e)", [LESS, NONE], "data=table,model=mlp"),
    ("kernels/fused/linear_group.hpp", "weigh", "@x2@,", [("x0.9", "x * 0.9f"), ("0", "x * 0.0f")], "data=table,model=logistic,method=dpsgd"),
    ("kernels/fused/linear_group.hpp", "weigh", "d * d", [("x0.9", "x * 0.9f")], "data=table,model=logistic,method=dpsgd"),
    ("kernels/fused/linear_group.hpp", "weigh", "a.inverse_grid", BOTH, "data=table,model=logistic,method=dpsgd"),
    ("kernels/fused/dense_linear_cpu.cpp", "score", "float>(@total@", [("x0.9", "x * 0.9"), ("0", "x * 0.0")], "data=matrix,model=logistic,method=dpsgd"),
    ("kernels/fused/dense_linear_cpu.cpp", "add", "row[e] + j) * @g.scaled[e]@", [("x0.9", "x * 0.9f"), ("x1.1", "x * 1.1f")], "data=matrix,model=logistic,method=dpsgd"),
    ("runtime/device/cpu/linear_sum.cpp", "add_up", "bias_ + kColumnBlock", [("without the bias", "x - 16")], "data=table,model=logistic,method=dpsgd"),
    ("runtime/device/cpu/linear_sum.cpp", "collect", "all_[to_size(first_number_ + k)]", [("twice", "2 * x")], "data=table,model=logistic,method=dpsgd"),
    ("kernels/contribution/contribution.hpp", "bound_of", "sum_grid(@norm@", [("x2", "2 * x")]),
    ("kernels/contribution/contribution.hpp", "bound_of", "sum_grid(@norm@", [("x4", "4 * x")], "method=dpsgd-quantile"),
    ("runtime/device/sensitivity.cpp", "sensitivity_rounding_error", "(1.0 + norm_error) * (1.0 + roundings * kUnit) + grid - 1.0", [("none", "-1e-3 + 0 * x")]),
    # Sampling.
    ("kernels/contribution/importance.hpp", "candidate_threshold", "r.rate", BOTH, "method=dpis"),
    ("kernels/contribution/importance.hpp", "acceptance_factor", "1.0f / norm", BOTH, "method=dpis"),
    ("kernels/contribution/importance.hpp", "acceptance_threshold", "clip < @n@", [], "method=dpis"),
    ("kernels/contribution/importance.hpp", "acceptance_threshold", "r.rate", BOTH, "method=dpis"),
    ("runtime/device/cpu/worker.cpp", "norms", "squared_norm(e)", BOTH, "method=dpis"),
    ("runtime/device/cpu/cpu_engine.cpp", "use_of", "acceptance, @step@", NUMBERS, "method=dpis"),
    ("runtime/methods/dpis.cpp", "rule", "clip = @epoch_.clip_norm@", BOTH, "method=dpis"),
    ("runtime/methods/dpis.cpp", "rule", "options().multiple", BOTH, "method=dpis"),
    ("runtime/methods/dpis.cpp", "rule", "options().floor", BOTH, "method=dpis"),
    ("runtime/methods/dpis.cpp", "prepare", "@clip@ *", BOTH, "method=dpis"),
    ("runtime/methods/dpis.cpp", "noisy_total", "norm_total(@max_norm@", BOTH, "method=dpis"),
    ("runtime/methods/dpis.cpp", "rate", "epoch_.clip_norm", [LESS], "method=dpis"),
    # Steps of optimizers, and what goes on beside them.
    ("kernels/step/update_math.hpp", "optimizer_step", "s.learning_rate", BOTH),
    ("kernels/step/update_math.hpp", "optimizer_step", "o.weight_decay", BOTH, "weight-decay=*"),
    ("kernels/step/update_math.hpp", "optimizer_step", "constexpr (kind == OptimizerKind::momentum) { m = L::fma(L::fill(@o.momentum@", BOTH),
    ("kernels/step/update_math.hpp", "optimizer_step", "@o.momentum@), m, g),", BOTH, "optimizer=nesterov"),
    ("kernels/step/update_math.hpp", "optimizer_step", "L::fill(1.0f - o.beta1)", [("+ 0.1", "x + 0.1f")], "optimizer=adam"),
    ("kernels/step/update_math.hpp", "optimizer_step", "L::fill(o.beta2)", [("x0.9", "x * 0.9f")], "optimizer=adam"),
    ("kernels/step/update_math.hpp", "optimizer_step", "s.bias2", BOTH, "optimizer=adam"),
    ("kernels/step/update_math.hpp", "optimizer_step", "s.bias1", BOTH, "optimizer=adamw"),
    ("kernels/step/update_math.hpp", "moving_average", "s.ema_decay", BOTH, "ema=*"),
    ("kernels/step/update_cpu.cpp", "step_chunk", "a.scalars.inverse_batch", BOTH),
    ("kernels/step/sample_cpu.cpp", "sample_chunk", "a.threshold >> 16", NUMBERS),
    ("kernels/step/sample_cpu.cpp", "sample_chunk", "first / 2", [("the first examples' words for all", "0 * x")]),
    ("kernels/step/sample_cpu.cpp", "drawn_by_lower_bits", "(a.threshold & 0xffff)", BOTH),
    ("kernels/step/sample_cpu.cpp", "drawn_by_lower_bits", "kLowerBits", [("the upper bits again", "0 * x")]),
    ("kernels/step/release_cpu.cpp", "release_sum", "@a.noise_std@)", BOTH),
    ("kernels/step/release_cpu.cpp", "release_sum", "s, @j@", [("the first chunk's for all", "0 * x")], "model=mlp"),
    ("kernels/step/step_size.hpp", "grown_step_size_sum", "s.weight", BOTH, "method=adp-sgd,schedule=adaptive,adaptive-weight=*"),
    ("kernels/step/step_size.hpp", "grown_step_size_sum", "double>(1 + @step@", [NEXT], "method=adp-sgd,schedule=adaptive,adaptive-weight=*"),
    ("runtime/device/cpu/cpu_engine.cpp", "adapt_learning_rate", "scalars.inverse_batch", BOTH, "method=adp-sgd,schedule=adaptive"),
    ("runtime/methods/schedule.cpp", "at", "c.beta1", BOTH, "optimizer=adam"),
    ("runtime/methods/schedule.cpp", "at", "c.beta2", [LESS], "optimizer=adamw"),
    ("runtime/methods/schedule.cpp", "optimizer_settings", "c.momentum", BOTH),
    ("runtime/methods/schedule.cpp", "optimizer_settings", "c.weight_decay", BOTH, "weight-decay=*"),
    # adaclip.
    ("kernels/step/adaclip_math.hpp", "restored_gradient", "s.inverse_batch", BOTH, "method=adaclip"),
    ("kernels/step/adaclip_math.hpp", "update_moments", "L::fill(1.0f - c.beta1)", [("x2", "x * 2.0f")], "method=adaclip"),
    ("kernels/step/adaclip_math.hpp", "update_moments", "s.noise_std", BOTH, "method=adaclip"),
    ("runtime/device/cpu/coordinates.cpp", "refresh", "scale_.root", BOTH, "method=adaclip"),
    ("runtime/device/cpu/coordinates.cpp", "refresh", "shrink * @mean[j]@", BOTH, "method=adaclip"),
    ("kernels/contribution/contribution.hpp", "bound_of", "1.0", BOTH, "method=dpis"),
    ("kernels/contribution/contribution.hpp", "bound_of", "AcceptedDirection>(contribution) ? 1.0 : @clip_norm@", BOTH, "method=adaclip"),
    ("runtime/methods/adaclip.cpp", "initialise", "o.max_variance", BOTH, "method=adaclip"),
    # norm-bound, dpsgd-quantile.
    ("runtime/methods/norm_bound.cpp", "norm_bound", "std::sqrt(inputs)", [("a tenth", "0.1 * x")], "method=norm-bound"),
    ("runtime/methods/norm_bound.cpp", "norm_bound", "static_cast<double>(network.spec.huber)", [("half of a Huber loss's slope", "0.5 * x")], "method=norm-bound,loss=huber"),
    ("runtime/methods/dpsgd_quantile.cpp", "rule", "options().target", BOTH, "method=dpsgd-quantile"),
    ("runtime/methods/dpsgd_quantile.cpp", "train_watched", "next_clip(rule(), clip_norm_, units_of(noisy, rule().grid))", BOTH, "method=dpsgd-quantile"),
    ("kernels/step/clip_rule.hpp", "scalars_at", "clip_norm = @clip@", BOTH, "method=dpsgd-quantile"),
    ("kernels/step/clip_rule.hpp", "scalars_at", "inverse_batch / @clip@", BOTH, "method=dpsgd-quantile,quantile-normalise="),
    ("runtime/methods/dpsgd_quantile.cpp", "train_watched", "batch.clipped", [NEXT, NONE], "method=dpsgd-quantile"),
    ("runtime/methods/dpsgd_quantile.cpp", "promise", "0.5", BOTH, "method=dpsgd-quantile"),
    ("runtime/methods/dpsgd_quantile.cpp", "promise", "count_noise()", BOTH, "method=dpsgd-quantile"),
    ("runtime/methods/dpsgd_quantile.cpp", "promise", "@gradient_noise_multiplier()@,", BOTH, "method=dpsgd-quantile"),
    # Features.
    ("runtime/data/table_rows.cpp", "next", "malformed_ == Malformed::missing", [("a row with a wrong number of cells is refused", "false && x")], "data=table,malformed=missing"),
    ("runtime/data/row_encoder.cpp", "counts_as_missing", "malformed_ == Malformed::missing", [("a cell that cannot be read is refused", "false && x")], "data=table,malformed=missing"),
    ("runtime/results/released_model.cpp", "file_of", "model.features.normalise != Normalise::none", [("a model does not say how its input is normalised", "false && x")], "normalise=unit"),
    ("runtime/features/pca.cpp", "add_symmetric_noise", "@sigma@, .", [("FIFTEEN: noise x 0.9 in PCA", "0.9 * x"), MORE], "features=pca"),
    ("runtime/features/pca.cpp", "add_symmetric_noise", "sensitivity = @1.0@", BOTH, "features=pca"),
    ("runtime/features/pca.cpp", "add_symmetric_noise", "sigma * @std::sqrt(0.5)@", BOTH, "features=pca"),
    ("runtime/features/pca.cpp", "add_symmetric_noise", "sensitivity = @std::sqrt(0.5)@", BOTH, "features=pca"),
    ("runtime/features/pca.cpp", "add_symmetric_noise", "Gaussian{@sigma@", [MORE], "features=pca"),
    ("runtime/features/standardise.cpp", "dp_channel_scaling", "noise_std = @sigma@", [("FIFTEEN: noise x 0.9 in moments", "0.9 * x"), MORE], "features=scatter,feature-standardise="),
    ("runtime/features/standardise.cpp", "dp_channel_scaling", "sensitivity = @1.0@", BOTH, "features=scatter,feature-standardise="),
    ("runtime/features/standardise.cpp", "dp_channel_scaling", "Gaussian{@sigma@", [MORE], "features=scatter,feature-standardise="),
    ("privacy/certificate/write.cpp", "feature_release_json", "release.sigma", BOTH, "features=pca"),
    # The number of examples.
    ("runtime/methods/training_size.cpp", "training_size", "sensitivity = @1.0@", BOTH),
    ("privacy/certificate/write.cpp", "to_json", "c.size.noise_std", BOTH),
    ("privacy/certificate/write.cpp", "to_json", "@c.size.value@)}", NUMBERS),
    ("privacy/certificate/write.cpp", "to_json", "@c.size.value@);", NUMBERS, "size-is-public="),
    # Units of privacy of several rows. (Less noise for them in outpert or privgene is refused: it spends more than the budget.)
    ("runtime/data/first_rows.cpp", "uses", "schema_.unit->max_rows", NUMBERS, "data=units,size-is-public="),
    ("runtime/data/first_rows.cpp", "uses", "row.malformed || is_missing(schema_, schema_.columns[column_], unit)", [("rows that cannot be read are a unit of their own", "malformed_ == Malformed::refuse && x")], "data=units,malformed=missing"),
    ("runtime/data/first_rows.cpp", "uses", "columns[column_], @unit@", [("a unit that is missing is one", "row.malformed ? x : std::string_view(\"x\")")], "data=units,malformed=missing"),
    ("runtime/data/load_table.cpp", "read_split", "schema.unit->max_rows", NUMBERS, "data=units"),
    ("runtime/methods/training_size.cpp", "training_size", "n, 0.0, @data.unit_rows@", [BEFORE], "data=units,size-is-public="),
    ("runtime/methods/training_size.cpp", "training_size", "noise, @data.unit_rows@", [BEFORE], "data=units"),
    ("runtime/methods/make_plan.cpp", "plan_without_noise", "size.unit_rows", NUMBERS, "data=units"),
    ("runtime/methods/engine_method.cpp", "filter", "plan_.group", NUMBERS, "data=units,method=dpsgd-decay,fresh-noise-allowed="),
    ("runtime/methods/dpis.cpp", "filter", "plan().group", NUMBERS, "data=units,method=dpis"),
    ("runtime/methods/dp_agd_method.cpp", "DpAgdMethod", "config, @context.size.unit_rows@", NUMBERS, "data=units,method=dp-agd"),
    ("runtime/training/certify.cpp", "fill", "e.data.schema->unit->max_rows", NUMBERS, "data=units"),
    # Hold-outs.
    ("runtime/results/holdout_figures.cpp", "plan_holdout", "static_cast<double>(plan.releases)", [LESS], "data=table,holdout-epsilon=*"),
    ("runtime/results/holdout_figures.cpp", "plan_holdout", "static_cast<double>(unit_rows)", [LESS], "data=units,holdout-epsilon=*"),
    ("runtime/results/holdout_figures.cpp", "release_of", "noise_std = @plan.sigma@", BOTH, "data=table,holdout-epsilon=*"),
    ("runtime/results/holdout_figures.cpp", "release_of", "1.0", BOTH, "data=table,holdout-epsilon=*"),
    ("runtime/results/holdout_figures.cpp", "release_of", "step = @step@", [NONE], "dataset=stays.csv,data=table,holdout-epsilon=*"),
    ("privacy/certificate/certificate.cpp", "hold_out", "std::fmax(promise.epsilon, part.epsilon)", [LESS], "data=table,holdout-epsilon=*"),
    ("runtime/training/prepare.cpp", "release_features", "e.data.train", [("rows that were held out as well", "(append_examples(e.data.test, x), x)")], "features=pca,data=table,holdout=*"),
    ("runtime/results/holdout_figures.cpp", "release_errors", "powers[j]", BOTH + [("a row of no prediction counts twice", "2.0 * x")], "dataset=stays.csv,data=table,holdout-epsilon=*"),
    ("runtime/training/training.cpp", "begin", "@noise@)", [MORE], "data=table,holdout-epsilon=*"),
    ("privacy/certificate/write.cpp", "parts_json", "held.share", BOTH, "data=table,holdout=*"),
    # dp-agd.
    ("runtime/methods/dp_agd.cpp", "gradient_release", "@r.sensitivity@ * kProduct; if", [("FIFTEEN: noise x 0.9 in DP-AGD", "0.9 * x")], "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "iterate", "settings_.gradient_clip", BOTH, "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "objective", "steps, @settings_.loss_clip@", BOTH, "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "gradient_release", "linear_gradient_sensitivity(@settings_.gradient_clip@", [LESS], "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "iterate", "settings_.loss_clip", BOTH, "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "iterate", ", @epsilon@", BOTH, "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "iterate", "selection, @number@", [NEXT], "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "iterate", ", @settings_.threshold@", BOTH, "method=dp-agd,mini-batch=*"),
    ("runtime/methods/dp_agd.cpp", "accept", "w[j]) - @step@", BOTH, "method=dp-agd"),
    ("runtime/methods/dp_agd.cpp", "direction", "settings_.l2", BOTH, "method=dp-agd,l2=*"),
    ("runtime/methods/dp_agd_method.cpp", "promise", "linear_loss_sensitivity(@s.loss_clip@", BOTH, "method=dp-agd"),
    ("runtime/methods/noisy_min.cpp", "noisy_smallest", "nextafter(@epsilon@", BOTH, "method=privgene"),
    ("runtime/methods/noisy_min.cpp", "noisy_min", "scale = @sensitivity@", BOTH, "method=dp-agd,noisy-min=laplace"),
    # outpert, objpert, privgene.
    ("runtime/methods/output_perturbation.cpp", "fit", "noise_std()", BOTH, "method=outpert"),
    ("runtime/methods/output_perturbation.cpp", "OutputPerturbation", "regulariser_", BOTH, "method=outpert"),
    ("runtime/methods/output_perturbation.cpp", "OutputPerturbation", "all * all", BOTH, "method=outpert"),
    ("runtime/methods/output_perturbation.cpp", "fit", "w, @grid_@", [("x0.5", "0.5 * x")], "method=outpert"),
    ("runtime/methods/output_perturbation.cpp", "describe_mechanism", "sensitivity_", BOTH, "method=outpert"),
    ("runtime/methods/output_perturbation.cpp", "describe_mechanism", "noise_std()", BOTH, "method=outpert"),
    ("runtime/methods/objective_perturbation.cpp", "fit", "@mu_@)", BOTH, "method=objpert"),
    ("runtime/methods/objective_perturbation.cpp", "fit", "output_noise_std_", BOTH, "method=objpert"),
    ("runtime/methods/objective_perturbation.cpp", "describe_mechanism", "mu_", BOTH, "method=objpert"),
    ("runtime/methods/objective_perturbation.cpp", "fit", "normal(@1@", [("the first noise again", "0 * x")], "method=objpert"),
    ("runtime/methods/privgene.cpp", "fit", "linear_loss_sensitivity(@loss_clip_@", BOTH, "method=privgene"),
    ("runtime/methods/privgene.cpp", "fit", "selection_epsilon_", BOTH, "method=privgene"),
    ("runtime/methods/privgene.cpp", "fit", "selection, @generation@", NUMBERS, "method=privgene"),
    ("runtime/methods/privgene.cpp", "releases", "choices_", NUMBERS, "method=privgene"),
    ("runtime/methods/privgene.cpp", "describe_mechanism", "linear_loss_sensitivity(@loss_clip_@", BOTH, "method=privgene"),
    # Plans and certificates.
    ("runtime/methods/make_plan.cpp", "plan_without_noise", "*config.steps", NUMBERS),
    ("runtime/methods/make_plan.cpp", "noise_multiplier_for", "*config.sigma", BOTH, "sigma=*,size-is-public="),
    ("runtime/methods/method_context.cpp", "method_context", "split->training_epsilon", BOTH),
    ("runtime/methods/method_context.cpp", "method_context", "split->training_delta", BOTH),
    ("privacy/certificate/write.cpp", "to_json", "c.split->count_epsilon", BOTH),
    ("runtime/methods/engine_method.cpp", "promise", "bound_of(recipe().contribution, plan_.clip_norm).grid", [("x2", "2 * x")]),
    ("runtime/methods/engine_method.cpp", "promise", "plan_.steps", NUMBERS),
    ("runtime/methods/engine_method.cpp", "promise", "plan_.epoch_noise", BOTH, "method=dpis"),
    ("privacy/certificate/write.cpp", "operator()", "update({{\"order\", @s.order@", BOTH),
    # The CUDA engine, emulated.
    ("runtime/device/cuda/step_sum.cpp", "sample_args", "poisson->threshold", BOTH, "device=cuda"),
    ("runtime/device/cuda/device_engine.cpp", "scale_of", "static_cast<double>(clip_norm)", [("x2", "2 * x")], "device=cuda"),
    ("kernels/fused/candidates.cuh", "acceptance_word", "*a.step", NUMBERS, "device=cuda,method=dpis"),
    ("runtime/device/cuda/norms.cpp", "total", "max_norm = @max_norm@", BOTH, "device=cuda,method=dpis"),
    ("kernels/step/finish.cuh", "finish_kernel", "scalars.noise_std", BOTH, "device=cuda"),
    # Coordinate-wise clipping in the fused kernels: w, its squares, its sum.
    ("kernels/contribution/coordinates_math.hpp", "transformed_product", "-mean", [LESS, NONE]),
    ("kernels/contribution/coordinates_math.hpp", "transformed_product", "fma(x, dy, -mean) * @inverse@", BOTH),
    ("kernels/fused/sums.cuh", "transformed", "t.mean[parameter]", [LESS, NONE]),
    ("kernels/fused/sums.cuh", "transformed", "t.inverse[parameter]", BOTH),
    ("kernels/fused/sums.cuh", "transform_unit", "unit.parameter(l, n)", [("the first number's", "0 * x")]),
    ("kernels/fused/sums.cuh", "square_units", "factor_of<i>(a, s, e)", BOTH),
    ("kernels/fused/sums.cuh", "square_transformed", "ScalarLanes::fma(w, w, square)", BOTH),
    ("kernels/fused/sums.cuh", "square_transformed", "layer == n.layer ? w * w : 0.0f", BOTH + [NONE]),
    ("kernels/fused/sums.cuh", "add_dense", "biased_product(w, @scale@)", BOTH),
    # The fused kernel's norms, factors and products.
    ("kernels/fused/sums.cuh", "square_units", "sum = @warp_sum(sum)@", BOTH),
    ("kernels/fused/sums.cuh", "square_units", "warp_sum(bias_gradient<P, i>(s, e))", BOTH + [NONE]),
    ("kernels/fused/sums.cuh", "layer_squares", "(units * factor * factor + bias)", [("without the input's factor", "units + bias"), ("without the bias", "units * factor * factor")]),
    ("kernels/fused/sums.cuh", "decide", "factors[layer] * unit", BOTH),
    ("kernels/fused/candidates.cuh", "decide_example", "clip_factors(clip_settings(a.clip, *a.sum_scale), squares, layers, factors, size) < INFINITY", [("factor 0 in place of a skip", "x || true")]),
    ("kernels/fused/sums.cuh", "store", "has_example_owners ? @added_own@", NUMBERS),
    ("kernels/fused/head.cuh", "finish_example", "259 - exponent", NUMBERS),
    ("kernels/fused/head.cuh", "finish_example", "254 - field", NUMBERS),
    ("kernels/fused/forward.cuh", "convolve", "cross[n][2 * r + k]", [NONE]),
    ("kernels/fused/forward.cuh", "convolve", "rest[n][2 * r + k]", [NONE]),
    ("kernels/fused/pool.cuh", "pool_backward", "down_here, x, @false@", [("what the row below won", "!x")]),
    # The fused kernel's maps from lanes to operands: rows and columns, halves of a step, low parts, borders, scales.
    ("kernels/fused/forward.cuh", "build_input", "row - @c.pad@", [NEXT]),
    ("kernels/fused/forward.cuh", "build_input", "c.pixel_place(@row@, column)", [("columns for rows", "column")]),
    ("kernels/fused/forward.cuh", "build_input", "= @parts.low@", [NONE]),
    ("kernels/fused/forward.cuh", "build_input", "split_halves(feature(2 * n), feature(@2 * n + 1@))", [("one number twice", "x - 1")]),
    ("kernels/fused/forward.cuh", "convolve", "tile * 16 + @(l.matrix & 1) * 8@", [("rows and columns exchanged", "(l.matrix >> 1) * 8 + 0 * x")]),
    ("kernels/fused/forward.cuh", "convolve", "@(l.matrix >> 1)@ * kHalf", [("the first half twice", "0 * x")]),
    ("kernels/fused/forward.cuh", "convolve", "pair * 16 + @(l.matrix >> 1) * 8@", [("the other eight channels", "8 - x")]),
    ("kernels/fused/forward.cuh", "convolve", "c.weight_chunk(0, @l.matrix & 1@", [("halves exchanged", "1 - x")]),
    ("kernels/fused/forward.cuh", "convolve", "2 * c.out * @step@", [BEFORE]),
    ("kernels/fused/forward.cuh", "convolve", "weight_step + @Packed<P>::kLow@", [NONE]),
    ("kernels/fused/forward.cuh", "convolve", "sum = d[n][@2 * r + k@]", [("rows and columns exchanged", "x == 1 ? 2 : x == 2 ? 1 : x")]),
    ("kernels/fused/forward.cuh", "convolve", "tile * 16 + @l.g + 8 * r@", [("the upper rows twice", "l.g + 0 * x")]),
    ("kernels/fused/forward.cuh", "convolve", "n * 8 + @2 * l.t@", [("another lane's columns", "x ^ 2")]),
    ("kernels/fused/forward.cuh", "convolve", "@split == 0@ ? sum", [("a bias with each part", "true || x")]),
    ("kernels/fused/forward.cuh", "convolve", "i == 0 ? @input_factor<P>(a)@", [("the input's scale forgotten", "0 * x + 1")]),
    ("kernels/fused/forward.cuh", "hidden_forward", "(@(l.matrix >> 1) * 8@ + l.row)", [("rows and columns exchanged", "(l.matrix & 1) * 8 + 0 * x")]),
    ("kernels/fused/forward.cuh", "hidden_forward", "c.weight_pitch() + @(l.matrix & 1)@", [("halves exchanged", "1 - x")]),
    ("kernels/fused/forward.cuh", "hidden_forward", "@l.g@ % P::kExamples", [("the first example for all", "0 * x")]),
    ("kernels/fused/forward.cuh", "hidden_forward", "high[step * 8 + @4@]", [NONE]),
    ("kernels/fused/forward.cuh", "hidden_forward", "? @low[step * 8]@", [NONE]),
    ("kernels/fused/forward.cuh", "hidden_forward", "from + @Packed<P>::kLow@", [NONE]),
    ("kernels/fused/forward.cuh", "hidden_forward", "warp * c.hidden + @2 * l.t@", [("another lane's columns", "x ^ 2")]),
    ("kernels/fused/forward.cuh", "hidden_forward", "d[n][0], d[n][@1@]", [("a row for a column", "x + 1")]),
    ("kernels/fused/backward.cuh", "hidden_backward", "(@(l.matrix & 1) * 8@ + l.row)", [("rows and columns exchanged", "(l.matrix >> 1) * 8 + 0 * x")]),
    ("kernels/fused/backward.cuh", "hidden_backward", "high[step * 8 + @4@]", [NONE]),
    ("kernels/fused/backward.cuh", "hidden_backward", "? @low[step * 8]@", [NONE]),
    ("kernels/fused/backward.cuh", "hidden_backward", "from + @Packed<P>::kLow@", [NONE]),
    ("kernels/fused/backward.cuh", "hidden_backward", "f.derivative(@y.y@)", [("another input's derivative", "y.x + 0 * x")]),
    ("kernels/fused/backward.cuh", "hidden_backward", "n * 8 + @2 * l.t@", [("another lane's columns", "x ^ 2")]),
    ("kernels/fused/backward.cuh", "input_gradient", "slots + @(l.matrix & 1) * 8@", [("rows and columns exchanged", "(l.matrix >> 1) * 8 + 0 * x")]),
    ("kernels/fused/backward.cuh", "input_gradient", "@(l.matrix >> 1)@ * c.dy_plane", [("the first half twice", "0 * x")]),
    ("kernels/fused/backward.cuh", "input_gradient", "+ pair, @l.matrix >> 1@", [("halves exchanged", "1 - x")]),
    ("kernels/fused/backward.cuh", "input_gradient", "l.matrix >> 1, @(l.matrix & 1) * 8@", [("the other eight channels", "8 - x")]),
    ("kernels/fused/backward.cuh", "input_gradient", "tap / kSide * @c.dy_row@", [BEFORE]),
    ("kernels/fused/backward.cuh", "input_gradient", "weights + @Packed<P>::kLow@", [NONE]),
    ("kernels/fused/backward.cuh", "input_gradient", "dy_low, @low@ + from", [("the high parts for the low ones", "high")]),
    ("kernels/fused/backward.cuh", "input_gradient", "l.g + 8 * @r@", [("the upper rows twice", "0 * x")]),
    ("kernels/fused/backward.cuh", "input_gradient", "(@2 * pair + n@) * c.plane", [("channels exchanged", "x ^ 1")]),
    ("kernels/fused/backward.cuh", "input_gradient", "d[n][@2 * r@]", [("rows and columns exchanged", "x ^ 1")]),
    ("kernels/fused/backward.cuh", "Unit", "kBlocks / @kChunks@", [NEXT]),
    ("kernels/fused/backward.cuh", "Unit::parameter", "l.g + @(n & 2) * 4@", [("rows exchanged", "8 - x")]),
    ("kernels/fused/backward.cuh", "Unit::parameter", "2 * l.t + @(n & 1)@", [("columns exchanged", "1 - x")]),
    ("kernels/fused/backward.cuh", "Unit::make", "(2 * block_m + @(l.matrix & 1)@)", [("rows and columns exchanged", "(l.matrix >> 1) + 0 * x")]),
    ("kernels/fused/backward.cuh", "Unit::make", "step * 16 + @(l.matrix & 1) * 8@", [("rows and columns exchanged", "(l.matrix >> 1) * 8 + 0 * x")]),
    ("kernels/fused/backward.cuh", "Unit::make", "step * 16 + @(l.matrix >> 1) * 8@", [("rows and columns exchanged", "(l.matrix & 1) * 8 + 0 * x")]),
    ("kernels/fused/backward.cuh", "Unit::make", "c.tap_place(tap, chunk) + @(l.matrix >> 1)@", [("the first half twice", "(c.unit_k == 1 ? x : 0 * x)")]),
    ("kernels/fused/backward.cuh", "Unit::make", "kArrays.input[@1@], x_at", [NONE]),
    ("kernels/fused/backward.cuh", "Unit::make", "kArrays.dy[@1@], e) + at", [NONE]),
    ("kernels/fused/backward.cuh", "Unit::make", "d[n / 4][@n % 4@]", [("rows and columns exchanged", "x == 1 ? 2 : x == 2 ? 1 : x")]),
    ("kernels/fused/backward.cuh", "Unit::make", "chunk + n / 4 % c.unit_k < @c.tap_chunks@", [NEXT]),
    ("kernels/fused/backward.cuh", "bias_gradient", "(2 * m + @(l.matrix & 1)@)", [("rows and columns exchanged", "(l.matrix >> 1) + 0 * x")]),
    ("kernels/fused/backward.cuh", "bias_gradient", "kArrays.dy[@1@], e) + at", [NONE]),
    ("kernels/fused/backward.cuh", "bias_gradient", "l.g + 8] = @d[2]@", [("the upper rows twice", "d[0] + 0 * x")]),
    ("kernels/fused/sums.cuh", "hidden_inputs", "a = numbers_at<P::kAll>(high, @low@", [("the high parts for the low ones", "high")]),
    ("kernels/fused/sums.cuh", "hidden_inputs", "in / 2 + @1@", [NONE]),
    ("kernels/fused/sums.cuh", "factor_of", "@plane_of<float>(s, P::layout().vector, e)[P::kVector.inverse]@;", [("the scale forgotten", "0 * x + 1")]),
    ("kernels/fused/sums.cuh", "layer_squares", "(units * factor * factor + bias) * @inverse@", [("the scale forgotten", "0 * x + 1")]),
    ("kernels/fused/sums.cuh", "layer_squares", "P::kDense.hidden) * @inverse@", [("the scale forgotten", "0 * x + 1")]),
    ("kernels/fused/sums.cuh", "decide", "? 1.0f : @vector[P::kVector.inverse]@", [("the scale forgotten", "0 * x + 1")]),
    ("kernels/fused/sums.cuh", "add_units", "i == 0 ? @input_factor<P>(a)@", [("the input's scale forgotten", "0 * x + 1")]),
    ("kernels/fused/sums.cuh", "add_units", "kept.number[q][n], @scale@", BOTH),
    ("kernels/fused/sums.cuh", "add_units", "biased_product(d[n], @scale@)", BOTH),
    ("kernels/fused/sums.cuh", "add_units", "if (@s.adds[e] == 0@) return", [("examples are added that must be skipped", "false && x")]),
    ("kernels/fused/sums.cuh", "add_units", "if (@s.adds[e] == 0@) continue", [("examples are added that must be skipped", "false && x")]),
    ("kernels/fused/sums.cuh", "add_dense", "x.v[k] *= @scale@", BOTH),
    ("kernels/fused/sums.cuh", "store", "c.parameter(@o + k / 4@", [("rows and columns exchanged", "o + k % 8 + 0 * x")]),
    ("kernels/fused/sums.cuh", "store", "first + k] - @added@", NUMBERS),
    ("kernels/fused/head.cuh", "finish_example", "d *= @ScalarLanes::from_bits(field << 23)@", [("the scale forgotten", "0 * x + 1")]),
    ("kernels/fused/head.cuh", "finish_example", "uint16_t>(@parts.low@)", [NONE]),
    ("kernels/fused/head.cuh", "square_inputs", "numbers_at<P::kAll>(high, @low@", [("the high parts for the low ones", "high")]),
    ("kernels/fused/pool.cuh", "larger", "(y ? @0x10000u@", [("the first channel's bit for both", "x >> 16")]),
    ("kernels/fused/pool.cuh", "where", "bit + @16@", [NONE]),
    ("kernels/fused/pool.cuh", "pool_forward", "@part < c.splits@", [("the first part alone", "false && x")]),
    ("kernels/fused/pool.cuh", "pool_forward", "y + @next.pad@", [BEFORE]),
    ("kernels/fused/pool.cuh", "pool_forward", "4 * place + @j % 4@", [("channels exchanged", "x ^ 1")]),
    ("kernels/fused/pool.cuh", "pool_forward", "below_right = at(@1@", [NONE]),
    ("kernels/fused/pool.cuh", "pool_forward", "* kPairs] = @down@", [("what the next column won", "across")]),
    ("kernels/fused/pool.cuh", "pool_backward", "c.dy_place(@y@", [NEXT]),
    ("kernels/fused/pool.cuh", "pool_backward", "c.dy_place(y, x)) + @j % 4@", [("channels exchanged", "x ^ 1")]),
    ("kernels/fused/pool.cuh", "pool_backward", "down_above, x, @true@", [("what the row above won", "!x")]),
    ("kernels/fused/pool.cuh", "pool_backward", "where(v, across, x, @false@)", [("what the next column won", "!x")]),
    ("kernels/fused/pool.cuh", "pool_backward", ", kArrays.dy[0], e)[word] = @0@", [("zeros are not written again", "plane_of<u32>(s, kArrays.dy[0], e)[word] + 0 * x")]),
    # The packed copy of the parameters.
    ("kernels/step/packed_image.cuh", "pack_number", "uint16_t>(@parts.low@)", [NONE]),
    ("kernels/step/packed_image.cuh", "pack_number", "to + @image.low@", [NONE]),
    ("kernels/step/update.cuh", "update_number", "@a.packed.places != nullptr@", [("the packed copy is that of an earlier step", "false && x")]),
    # Dense rows: their products, and the same of w.
    ("kernels/fused/dense_rows.cuh", "tile_product", "{@top.v[k].low@", [NONE]),
    ("kernels/fused/dense_rows.cuh", "tile_product", "{@b.v[k].low@", [NONE]),
    ("kernels/fused/dense_rows.cuh", "tile_product", "x.or_last(@example + 8@)", [("the upper rows twice", "x - 8")]),
    ("kernels/fused/dense_rows.cuh", "tile_product", "16 * step + @4 * l.t@)", [("a lane's terms are its neighbour's", "x ^ 4")]),
    ("kernels/fused/dense_rows.cuh", "tile_product", "output + 8 * n + @l.g@", [("outputs exchanged", "x ^ 1")]),
    ("kernels/fused/dense_rows.cuh", "tile_product", "2 * l.t + @n % 2@", [("columns exchanged", "1 - x")]),
    ("kernels/fused/dense_rows.cuh", "tile_product", "example + @n % 4 / 2 * 8@", [("rows exchanged", "8 - x")]),
    ("kernels/fused/dense_rows.cuh", "tile_product", "min(steps, (part + 1) * each)", [("a part ends early", "x - 1")]),
    ("kernels/fused/dense_rows.cuh", "tile_forward", "partial[e][@part * l.out@ + o] = sum", [("the last part alone", "0 * x")]),
    ("kernels/fused/dense_rows.cuh", "tile_sum", "static_cast<u32>(__popc(adding))", [("a term too few taken off", "x - 1")]),
    ("kernels/fused/dense_rows.cuh", "TileTransform", "t.mean[parameter]", [LESS, NONE]),
    ("kernels/fused/dense_rows.cuh", "TileTransform", "t.inverse[parameter]", BOTH),
    ("kernels/fused/dense_rows.cuh", "tile_squares", "w * w", BOTH + [("by the identity", "by.inverse[i][k] * by.inverse[i][k] * (v.x[i] * v.dy[k] * (v.x[i] * v.dy[k]) - 2.0f * (v.x[i] * v.dy[k]) * by.mean[i][k] + by.mean[i][k] * by.mean[i][k])")]),
    ("kernels/fused/dense_rows.cuh", "tile_squares", "= @sum@", BOTH + [("of the last warp alone", "warp == kWarps - 1 ? x : 0.0f")]),
    ("kernels/fused/dense_rows.cuh", "tile_sum", "scales[e]", BOTH + [("the first row's", "scales[0] + 0.0f * x")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "scales[e] = @factors[0]@", BOTH),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "a.functions[is_last ? 0 : @layer@]", [("forward by the first function", "0 * x")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "a.functions[@layer - 1@]", [("back by the first function", "0 * x")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "d.layer[@layer + 1@].input", [("activations of the layer after", "layer + 2 < layers ? x + 1 : x")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "d.layer[@layer - 1@].gradient", [("gradients of the first layer", "0 * x")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "sum * @f.derivative(input[e][i])@", [NONE, ("without the derivative", "0 * x + 1")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "squares[layer] = @dense_squared_norm(row_square(to + l.input, l.in), row_square(to + l.gradient, l.out), l.out)@", BOTH + [("of two layers alone", "layer > 1 ? 0.0f : x")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "lane == 0 ? @1.0f@ : 0.0f", BOTH + [("of the first layer alone", "layer == 0 ? x : 0.0f")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "by = @factors[layer]@", BOTH + [("the first layer's", "factors[0]")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "squares + @layer@ * kWarps", [("of one layer for all", "0 * x")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "transforms>(d.layer[@layer@]", [("the first layer's sum alone", "0 * x")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "layer_squares[(layer * kWarps + warp) * x.n + e]", BOTH + [("of the last layer alone", "layer == layers - 1 ? x : 0.0f")]),
    # A network of texts whole.
    ("kernels/fused/recurrent_block.cuh", "begin_group", "P::rows(length)", [("the last row is not zeroed", "x - 1")]),
    ("kernels/fused/recurrent_block.cuh", "dense_words", "c[0] + @rest[0]@", [("the low parts dropped", "x * 0.0f")]),
    ("kernels/fused/recurrent_steps.cuh", "steps_forward", "= sums[j][@i@]", [("rows and columns exchanged", "x == 1 ? 2 : x == 2 ? 1 : x")]),
    ("kernels/fused/recurrent_steps.cuh", "steps_forward", "(@step < w.length[i]@) *reinterpret_cast", [("a step too many", "step <= w.length[i] || x")]),
    ("kernels/fused/recurrent_steps.cuh", "steps_backward", "step >= 0 && step < w.length[i]", [("a step too few", "x && step + 1 < w.length[i]")]),
    ("kernels/fused/recurrent_steps.cuh", "steps_backward", "saved[(k + 1) % 4].kept[i]", BOTH),
    ("kernels/fused/recurrent_steps.cuh", "steps_forward", "take(wh[m][j], P::kWords + @32 * m@)", [("the first 32 units twice", "0 * x")]),
    ("kernels/fused/recurrent_steps.cuh", "steps_forward", "biases[(2 + gate) * P::kHidden]", BOTH),
    ("kernels/fused/recurrent_steps.cuh", "UnitStep::forward", "unit.state(kept)", BOTH),
    ("kernels/fused/recurrent_steps.cuh", "UnitStep::backward", "carry += @dh@", BOTH),
    ("kernels/fused/recurrent_steps.cuh", "steps_backward", "state_at(i, @step@)", [BEFORE]),
    ("kernels/fused/recurrent_steps.cuh", "steps_backward", "if (@j < 4@)", [("half of the products dropped", "x || true")]),
    ("kernels/fused/recurrent_head.cuh", "finish_text", "254 - field", NUMBERS),
    ("kernels/fused/recurrent_sums.cuh", "words_back", "f.derivative(now)", BOTH + [("not the function's", "0.0f * x + 1.0f")]),
    ("kernels/fused/recurrent_sums.cuh", "make_others", "gate == @(of_inputs ? 3 : 0)@", [("products of no parameter are counted", "x + 4"), ("a gate too many", "0 * x")]),
    ("kernels/fused/recurrent_sums.cuh", "make_others", "P::bias_row(n)", [("another gate's", "x ^ 1")]),
    ("kernels/fused/recurrent_sums.cuh", "decide_and_add", "(inverse * inverse)", BOTH + [("without the scale", "0.0f * x + 1.0f")]),
    ("kernels/fused/recurrent_sums.cuh", "decide_and_add", "&& !P::kTransforms ? @inverse@", BOTH),
    ("kernels/fused/recurrent_sums.cuh", "decide_and_add", "clip_factors(clip_settings(a.clip, *a.sum_scale), squares, P::kLayers, factors) < INFINITY", [("factor 0 in place of a skip", "x || true")]),
    ("kernels/fused/recurrent_sums.cuh", "transform", "layer < 2 ? inverse : 1.0f", BOTH),
    # Targets, class weights and held-out rows on CUDA.
    ("kernels/fused/candidates.cuh", "ClassWeight", "a.class_weights[@label@]", [("the first class's weight", "0 * x")]),
    ("kernels/fused/candidates.cuh", "ClassWeight", "weighs_factors(@a.task@", [("the class weight before the clipping", "FusedTask::norms"), ("the class weight not in the loss", "FusedTask::clip")]),
    ("kernels/fused/candidates.cuh", "ClassWeight", "weighs_factors(a.task, @transforms@)", [("the class weight after transformed gradients are clipped", "false && x")]),
    ("kernels/fused/head.cuh", "finish_example", "weight.of_loss", [("the class weight is left out of the loss", "0 * x + 1")]),
    ("kernels/fused/sums.cuh", "decide", "vector[P::kVector.weight]", [("the class weight is left out", "0 * x + 1")]),
    ("kernels/fused/recurrent_head.cuh", "finish_text", "weight.of_loss", [("the class weight is left out of the loss", "0 * x + 1")]),
    ("kernels/fused/recurrent_sums.cuh", "decide_and_add", "text[P::kText.weight]", [("the class weight is left out", "0 * x + 1")]),
    ("kernels/layers/loss_math.hpp", "target_derivative", "r < -bound ? @-bound@", [("a Huber bound on the wrong side", "-x")]),
    ("kernels/layers/loss_math.hpp", "target_derivative", "above > bound ? @bound@", [("residuals above the Huber bound are not clamped", "above")]),
    ("kernels/layers/loss_math.hpp", "target_value", "0.5f * @h@", [("a Huber loss without its offset", "0 * x")]),
    ("kernels/layers/loss.cuh", "loss_kernel", "a.targets[@number_in_set(a.batch, a.examples, e)@]", [("the target of another row", "e + 0 * x")]),
    ("kernels/layers/loss.cuh", "loss_kernel", "a.huber", BOTH),
    ("kernels/layers/loss.cuh", "loss_kernel", "a.class_weights[a.label[e]]", [("the class weight is left out", "0 * x + 1")]),
    ("kernels/contribution/clip.cuh", "clip_kernel", "a.class_weights[a.label[e]]", [("the class weight is left out", "0 * x + 1")]),
    ("kernels/contribution/clip.cuh", "clip_kernel", "a.class_weights[@a.label[e]@]", [("the first class's weight", "0 * x")]),
    ("kernels/fused/dense_rows.cuh", "truth_of", "a.targets[@number@]", [NEXT]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "a.huber", BOTH),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "a.class_weights[truth]", [("the class weight is left out of the loss", "0 * x + 1")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "!@weighs_factors(task, transforms)@", [("the class weight before the clipping, too", "false && x")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "a.class_weights[a.labels[number_of(e)]]", [("the class weight is left out", "0 * x + 1")]),
    ("kernels/fused/dense_rows.cuh", "dense_rows_kernel", "a.labels[@number_of(e)@]", [("the weight of another row's class", "e + 0 * x")]),
    ("runtime/device/cuda/layer_wise.cu", "backward", "weighted == Weighted::loss", [("the class weight before the clipping, too", "true || x")]),
    ("runtime/device/cuda/step_sum.cpp", "add_by_layers", "? @Weighted::factors@ :", [("the class weight before the clipping", "Weighted::loss")]),
    ("runtime/device/cuda/norms.cpp", "measure_all", "backward(@Weighted::loss@)", [("norms without the class weight", "Weighted::factors")]),
    ("runtime/device/cuda/engine_parts.cpp", "load", "numbering.emplace(@data@)", [("draws by the row's number in the training set", "(x.numbers.clear(), x)")]),
    ("kernels/step/sample.cuh", "allocated_flags_kernel", "of[i / 4].step[i % 4] == @step@", [BEFORE]),
    ("kernels/step/sample.cuh", "allocated_flags_kernel", "epoch % a.allocated.epochs", [("the steps of another epoch", "(x + 1) % a.allocated.epochs")]),
    ("kernels/step/allocation.cuh", "allocate_kernel", "a.index[@i - a.begin@]", [("another row is held out", "x == 0 ? 1 : x - 1")]),
    ("kernels/step/allocation.cuh", "allocate_kernel", "a.stream.step += @blockIdx.y@", [("the same steps in all epochs", "0 * x")]),
    ("kernels/step/sample.cuh", "write_flags", "drawn && @index_of<true>(a, first + std::int64_t{16} * row) != kHeldOut@", [("held-out rows are drawn", "true || x")]),
    ("kernels/step/sample.cuh", "write_flags", "a.norms[@index@]", [("the norm of another row", "x == 0 ? 1 : x - 1")]),
    ("kernels/step/sample.cuh", "sample_place_kernel", "a.index[i]", [("another row than the one that is drawn", "x == 0 ? 1 : x - 1")]),
    # Layers for texts on CUDA: recurrent, their gradients, embeddings, means.
    ("kernels/layers/recurrent.cuh", "begin", "a.length[first + i]", [BEFORE]),
    ("kernels/layers/recurrent.cuh", "load_all", "from[row * a.hidden + k]", BOTH),
    ("kernels/layers/recurrent.cuh", "start_slab", "at[k]", [LESS]),
    ("kernels/layers/recurrent.cuh", "start_slab", "slab + @4 * i@", [("to the slab's beginning", "0 * x")]),
    ("kernels/layers/recurrent.cuh", "finish_slab", "1", [("always the same slab", "0 * x")]),
    ("kernels/layers/recurrent.cuh", "place_of", "length[e] - 1 - s", [("both directions forwards", "s + 0 * x")]),
    ("kernels/layers/recurrent.cuh", "recurrent_kernel", "h[i].v[n]", BOTH),
    ("kernels/layers/recurrent.cuh", "recurrent_kernel", "length = @b.length[b.own(n)]@", [BEFORE]),
    ("kernels/layers/recurrent.cuh", "step_forward", "c = @u.state(kept)@", [LESS, NONE]),
    ("kernels/layers/recurrent.cuh", "step_forward", "state_bias[2]", [LESS, NONE]),
    ("kernels/layers/recurrent.cuh", "recurrent_kernel", "h += @b.total[at]@", [LESS, NONE]),
    ("kernels/layers/recurrent.cuh", "recurrent_kernel", "static_cast<float>(length)", BOTH),
    ("kernels/layers/recurrent.cuh", "recurrent_kernel", "length - 1", NUMBERS),
    ("kernels/layers/recurrent.cuh", "recurrent_kernel", "output(n, 0, j) = @0.0f@", [("a text without words gives 1", "x + 1.0f")]),
    ("kernels/layers/recurrent.cuh", "recurrent_backward_kernel", "s - 1", [NEXT]),
    ("kernels/layers/recurrent.cuh", "recurrent_backward_kernel", "length - 1", NUMBERS),
    ("kernels/layers/recurrent.cuh", "recurrent_backward_kernel", "static_cast<float>(length)", BOTH),
    ("kernels/layers/recurrent.cuh", "recurrent_backward_kernel", "d.v[n]", BOTH),
    ("kernels/layers/recurrent.cuh", "recurrent_backward_kernel", "dh[n] += @dy[n]@", BOTH),
    ("kernels/layers/recurrent.cuh", "step_back", "dh + @carry@", [LESS, NONE]),
    ("kernels/layers/recurrent.cuh", "step_back", "carry = @through@", BOTH),
    ("kernels/layers/recurrent.cuh", "recurrent_backward_kernel", "Cell::delta(g)", [("a GRU's last gate by its inputs", "0 * x + g")]),
    ("kernels/layers/recurrent_half.cuh", "load", "from[row * a.hidden + (back ? j : other)]", BOTH),
    ("kernels/layers/recurrent_half.cuh", "load", "i % 4", [("one gate for all", "0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "load", "2 * p + half", [("the first two gates twice", "half + 0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "load", "@kSlice * m@ + kOwn * t + i", [("the first summands again", "0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "add", "(@8 * n@ + g)", [("the first eight texts again", "0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "add", "pitch + @kSlice * m@", [("the first summands again", "0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "sum", "c < @kChains@", [BEFORE]),
    ("kernels/layers/recurrent_half.cuh", "sum", "gate / 2", [("the first two gates twice", "0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "sum", "gate % 2 * 2", [("one gate of two", "0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "text", "2 * t + i", [("one text twice", "2 * t + 0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "unit", "2 * t + i", [("one unit twice", "2 * t + 0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "is_active", "s < length[e]", [("a step too many", "s <= length[e] || x")]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_kernel", "Block::sum(sums, n, gate, i)", BOTH),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_kernel", "Cell::delta(gate)", [("a GRU's last gate by its inputs", "gate + 0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_kernel", "s + 1", [("the same step's inputs again", "s + 0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_kernel", "after = @s % 2 == 0@", [("states are replaced while others read them", "!x")]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_kernel", "b.carry[at] = @kept@", [LESS, NONE]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_kernel", "halves(@h@, 0.0f)", BOTH),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_kernel", "h += @b.total[at]@", [LESS, NONE]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_kernel", "static_cast<float>(b.length[e])", BOTH),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_kernel", "b.length[e] - 1", NUMBERS),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_kernel", "output_of(e, 0, j) = @0.0f@", [("a text without words gives 1", "x + 1.0f")]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_backward_kernel", "line_of(e, @s - 1@)", [NEXT]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_backward_kernel", "fetch(next, first, @s - 1@)", [("the same step's again", "s + 0 * x")]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_backward_kernel", "here = @s % 2 == 0@", [("deltas are replaced while others read them", "!x")]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_backward_kernel", "b.length[e] - 1", NUMBERS),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_backward_kernel", "static_cast<float>(b.length[e])", BOTH),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_backward_kernel", "Block::sum(sums, n, 0, i)", BOTH),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_backward_kernel", "254 - @exponent[n]@", [NEXT]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_backward_kernel", "from_bits(@exponent[n] << 23@)", [("deltas are not scaled", "0 * x + (127u << 23)")]),
    ("kernels/layers/recurrent_half.cuh", "half_recurrent_backward_kernel", "Cell::delta(2)", [("a GRU's last gate by its inputs", "0 * x + 2")]),
    ("kernels/layers/recurrent_batch.cuh", "text_states_kernel", "(is_reverse ? length - 1 - s : s)", [("the first state alone", "0 * x")]),
    ("kernels/layers/recurrent_batch.cuh", "text_states_kernel", "static_cast<float>(length)", BOTH),
    ("kernels/layers/recurrent_batch.cuh", "text_states_kernel", "is_reverse ? 0 : @length - 1@", [BEFORE]),
    ("kernels/layers/recurrent_batch.cuh", "text_states_kernel", "is_reverse ? @0@", [NEXT]),
    ("kernels/layers/recurrent_batch.cuh", "text_states_kernel", "else if (@length@", [("an empty text as one word", "x > 0 ? x : 1")]),
    ("kernels/products/sequence_gradient.cuh", "multiply", "at_.has_bias()", [("tensor cores without biases", "false && x")]),
    ("runtime/device/cuda/layers/recurrent.hpp", "sequence_gradient", "d == 0 ? -1 : 1", [("states of the same step", "0 * x")]),
    ("runtime/device/cuda/layers/recurrent.hpp", "sequence_gradient", "@2 * units@; g", [BEFORE]),
    ("runtime/device/cuda/layers/token_dense.hpp", "sequence_gradient", "tensor(1)", [BEFORE]),
    ("kernels/products/sequence_gradient.cuh", "SequenceTile", "within % down", [NONE]),
    ("kernels/products/sequence_gradient.cuh", "SequenceTile", "within / down", [NONE]),
    ("kernels/products/sequence_gradient.cuh", "has_bias", "row == 0", [("a bias by every tile of rows", "true || x")]),
    ("kernels/products/sequence_gradient.cuh", "take", "part.x_shift", NUMBERS),
    ("kernels/products/sequence_gradient.cuh", "take", "place < text.length", [("states behind the end", "place <= text.length || x")]),
    ("kernels/products/sequence_gradient.cuh", "multiply", "has_more ? @begin@", [("the first terms again", "0 * x")]),
    ("kernels/products/sequence_gradient.cuh", "multiply", "half_ ^= @1@", [("one buffer for all terms", "0 * x")]),
    ("kernels/products/sequence_gradient.cuh", "multiply", "254 - @text.exponent@", [NEXT]),
    ("kernels/common/loss_exponent.cuh", "loss_exponent", "* outputs + @i@", [("a scale by the first logit alone", "0 * x")]),
    ("kernels/products/half_tile.cuh", "multiply", "a[half][@second@ + lane()", [("the first eight terms of a twice", "0 * x")]),
    ("kernels/products/half_tile.cuh", "load_columns", "b[@lane() / 8 % 2 * 8@ + lane()", [("the first eight terms of b twice", "0 * x")]),
    ("kernels/products/patch_gradient.cuh", "Patch", "border : @p.dy_pixels.n@", [("the first pixel behind the last one", "0 * x")]),
    ("kernels/products/patch_gradient.cuh", "multiply", "line += @g_.patch.lines@", [("the first patch alone", "x + g_.patch.dy.height")]),
    ("kernels/products/patch_gradient.cuh", "multiply", "254 - @exponent(e)@", [NEXT]),
    ("kernels/products/patch_gradient.cuh", "add", "x_term = 8 * @second@", [("the first eight terms of x twice", "0 * x")]),
    ("kernels/products/patch_gradient.cuh", "add", "dy_term = 8 * @first@", [("the first eight terms of dy twice", "0 * x")]),
    ("kernels/products/patch_gradient.cuh", "add", "@warp % 3@", [("one column of taps for all", "0 * x")]),
    ("kernels/products/patch_gradient.cuh", "add", "@x_pitch != 0@ ? x_", [("the bias of the first channels", "true || x")]),
    ("kernels/products/patch_gradient.cuh", "for_each_place", "@blockIdx.x == 0@ &&", [("a bias by every tile of rows", "true || x")]),
    ("kernels/products/patch_gradient.cuh", "for_each_place", "row < @g.rows@", [NEXT]),
    ("kernels/products/patch_gradient.cuh", "patch_gradient_sum_kernel", "factor(e) == 0.0f", [("examples are added that must be skipped", "false && x")]),
    ("kernels/products/patch_gradient.cuh", "patch_gradient_sum_kernel", "factor(late(e))", BOTH),
    ("kernels/products/patch_gradient.cuh", "patch_gradient_sum_kernel", "e += @static_cast<int>(gridDim.z)@", [("examples of other stripes", "0 * x + 1")]),
    ("kernels/products/tiled_product.hpp", "gradient_stripes", "@fewest@, capacity", [("more examples than 32 bits hold", "0 * x + 1")]),
    ("kernels/products/chunk.cuh", "load_chunk", "v[c] * @scale@", [("an input gradient is not scaled", "0 * x + 1.0f")]),
    ("kernels/products/patch_product.cuh", "pack_weights_kernel", "tile_of_columns * @p.steps.n@", [("the first columns' weights for all", "0 * x")]),
    ("kernels/products/patch_product.cuh", "PixelStep", "T::lane() / 16 * @q.examples * q.x_pixels.n@", [("the first eight channels twice", "0 * x")]),
    ("kernels/products/patch_product.cuh", "PixelStep", "p.outputs, @first_ + e@", [("one scale for all", "0 * x + first_")]),
    ("kernels/products/patch_product.cuh", "multiply", "second_chunks = @second@", [("the first eight channels' weights twice", "0 * x")]),
    ("kernels/products/patch_product.cuh", "multiply", "row_[m] + @tap@", [("one column of taps for all", "0 * x")]),
    ("kernels/products/patch_product.cuh", "multiply", "@T::warp_row()@ >=", [("warps with pixels that multiply nothing", "x + 64")]),
    ("kernels/products/patch_product.cuh", "store", "* @back@", [("an input gradient is not scaled back", "0 * x + 1.0f")]),
    ("kernels/products/patch_product.cuh", "store", "line_ + at.y >= @out.height@", [("rows behind the output", "x + 1")]),
    ("kernels/products/tiled_product.cuh", "Stripe", "@(left - 1) / static_cast<int>(gridDim.z)@ + 1", [("an example too few", "x > 0 ? x - 1 : x")]),
    ("kernels/products/tiled_product.cuh", "example", "i * @static_cast<int>(gridDim.z)@", [("examples of other stripes", "0 * x + 1")]),
    ("kernels/products/half_tile.cuh", "take", "line + i < @end@", [NEXT]),
    ("kernels/products/half_tile.cuh", "take", "@in_fours@) {", [("rows that are no whole fours by fours", "true || x")]),
    ("kernels/products/half_tile.cuh", "scale", "column[n] *= @factor@", [("biases are not scaled back", "0 * x + 1.0f")]),
    ("kernels/products/sequence_gradient.cuh", "sequence_gradient_norm_kernel", "at.holds_bias()", [("norms without biases", "false && x")]),
    ("kernels/products/sequence_gradient.cuh", "add_sequence", "scale, @one.cell[m][n]@", BOTH),
    ("kernels/products/sequence_gradient.cuh", "add_sequence", "scale, @one.column[n]@", BOTH),
    ("kernels/products/sequence_gradient.cuh", "add_sequence", "a.transform.mean[i]", [LESS, NONE]),
    ("kernels/products/sequence_gradient.cuh", "sequence_gradient_sum_kernel", "at, @text.factor@", BOTH),
    ("kernels/products/sequence_gradient.cuh", "sequence_gradient_sum_kernel", "factor != 0.0f", [("texts are added that must be skipped", "true || x")]),
    ("kernels/products/sequence_gradient.cuh", "sequence_gradient_sum_kernel", "text.example + @static_cast<int>(gridDim.z)@", [("texts of other stripes", "0 * x + 1")]),
    ("kernels/products/sequence_gradient.cuh", "sequence_gradient_sum_kernel", "texts % kMaxExamplesAtOnce == 0", [("more texts than 32 bits hold", "false && x")]),
    ("kernels/products/text_product.cuh", "load", "(@of_rows ? inner : second@)", [("the first eight lines twice", "0 * x")]),
    ("kernels/products/text_product.cuh", "load", "[of][@of_rows ? second : inner@]", [("the first eight terms twice", "0 * x")]),
    ("kernels/products/text_product.cuh", "line", "32 * e", [("half of the lines twice", "0 * x")]),
    ("kernels/products/text_product.cuh", "take", "k + i < @end@", [NEXT]),
    ("kernels/products/text_product.cuh", "take", "@in_fours@) {", [("rows that are no whole fours by fours", "true || x")]),
    ("kernels/products/text_product.cuh", "put", "held[e][pair] * @scale[e]@", BOTH),
    ("kernels/products/text_product.cuh", "put", "to[1], @both.low@", [("the low parts dropped", "0 * x")]),
    ("kernels/products/text_product.cuh", "text_product_kernel", "i - text * places < @a.length[text]@", [NEXT]),
    ("kernels/products/text_product.cuh", "text_product_kernel", "row + HalfTile::kRows <= @(example + 1) * places@", [("tiles that begin past an end are skipped", "x + (1 << 20)")]),
    ("kernels/products/text_product.cuh", "text_product_kernel", "offset_within(p.b.line, @j@)", [BEFORE]),
    ("kernels/products/text_product.cuh", "text_product_kernel", "take(k + @HalfTile::kTerms@)", [("the same terms again", "0 * x")]),
    ("kernels/products/text_product.cuh", "text_product_kernel", "half ^= @1@", [("one buffer for all terms", "0 * x")]),
    ("kernels/products/text_product.cuh", "text_product_kernel", "tile.a[half][@1@]", [("the high parts of a for the low ones", "0 * x")]),
    ("kernels/products/text_product.cuh", "text_product_kernel", "tile.b[half][@1@]", [("the high parts of b for the low ones", "0 * x")]),
    ("kernels/products/text_product.cuh", "text_product_kernel", "254 - @power@", [NEXT]),
    ("kernels/products/text_product.cuh", "text_product_kernel", "back + @bias@", [NONE]),
    ("kernels/products/text_product.cuh", "text_product_kernel", "offset_within(p.y_row, @i@)", [BEFORE]),
    ("kernels/layers/embedding.cuh", "embed_kernel", "@length@;", [BEFORE]),
    ("kernels/layers/embedding.cuh", "embed_kernel", "word * columns", NUMBERS),
    ("kernels/layers/embedding.cuh", "embedding_gradient_kernel", "text.word(i - 1) == word", [("a word as often as it stands", "false && x")]),
    ("kernels/layers/embedding.cuh", "embedding_gradient_kernel", "text.word(end) == word", [("a word's first place alone", "false && x")]),
    ("kernels/layers/embedding.cuh", "embedding_gradient_kernel", "row * row", BOTH),
    ("kernels/layers/embedding.cuh", "embedding_gradient_kernel", "scale, @row@", BOTH),
    ("kernels/layers/embedding.cuh", "embedding_gradient_kernel", "nullptr ? @factor@", BOTH),
    ("kernels/layers/mean_over_time.cuh", "weight_of_place", "static_cast<float>(length > 1 ? length : 1)", BOTH),
    ("kernels/layers/mean_over_time.cuh", "mean_over_time_kernel", "x[t * channels + c]", BOTH),
    ("kernels/layers/mean_over_time.cuh", "mean_over_time_kernel", "block_sum(square, partial)", BOTH),
    ("kernels/layers/mean_over_time.cuh", "mean_over_time_backward_kernel", "d - @along@", [LESS, NONE]),
    # Ranks: the neighbour's range, an example in two of them, sums that are left out, another step.
    ("runtime/data/share.hpp", "range_of", "at(rank)", [("the neighbour's range too", "x > 0 ? x - kRangeTile : x")]),
    ("runtime/data/share.hpp", "range_of", "at(rank + 1)", [("an example in two ranges", "x < examples ? x + 1 : x"), ("an example in none", "x > 0 ? x - 1 : x")]),
    ("runtime/data/range.cpp", "take", "clamp(@range_.begin@", [("an example in none, of a table", "x + 1"), ("an example in two ranges, of a table", "x > 0 ? x - 1 : x")]),
    ("runtime/data/range.cpp", "take", "at < @range_.end@", [("an example in two ranges, held out", "x + 1")]),
    ("runtime/data/cifar.cpp", "read_cifar", "skip(@range.begin@", [("the first records for all", "0 * x")]),
    ("runtime/data/images.cpp", "share_of", "first += @records[i]@", [("each file begins the set", "0 * x")]),
    ("runtime/data/glyphs.cpp", "load_glyphs", "range.begin", [("the first images for all", "0 * x")]),
    ("runtime/data/sentences.cpp", "make_part", "range.end", [("a sentence in two ranges", "x + 1")]),
    ("runtime/device/cpu/cpu_engine.cpp", "join", "sum_.size()", [("RANKS: half of the sum is left out", "x / 2")]),
    ("runtime/device/batch_draws.cpp", "draw_each", "@first@}", [("RANKS: places of the whole set", "0 * x")]),
    ("runtime/device/cpu/worker.cpp", "choose_factors", "w_.data->first", [("RANKS: the first range's words for all", "0 * x")]),
    ("runtime/device/joined_linear.hpp", "joined", "max_examples_", [("RANKS: another grid", "1e9 * x")]),
    ("runtime/device/cuda/ranked_sum.hpp", "launch", "words_", [("DEVICES: the all-reduce is left out", "0 * x"), ("DEVICES: the last word is left out", "x - 1"), ("DEVICES: half of the sum is left out", "x / 2")]),
    ("runtime/device/rank_sums.cpp", "why_not_on_devices", "if (@libraries[r]@", [("DEVICES: another version is not seen", "libraries[0]")]),
    ("runtime/device/rank_sums.hpp", "join_on_devices", "if (@tried[i]@", [("DEVICES: the tried sum is not looked at", "test_sum(ranks.size(), i)")]),
    ("runtime/methods/dpis.cpp", "noisy_total", "sum, @1@", [("RANKS: the total of the norms is left out", "0 * x")]),
    ("runtime/training/training.cpp", "follow", "train(@command.step@", [("RANKS: noise of another step", "x + 1")]),
    ("runtime/training/training.cpp", "follow", "train(command.step, @command.until@", [("RANKS: one step more", "x + 1")]),
    ("runtime/run/follow.cpp", "first_difference", "one.starts_with(code + \" \")", [("RANKS: a refusal shows the codes of rows", "false && x")]),
    ("runtime/run/follow.cpp", "facts_of", "train.whole_size()", [("RANKS: the number of rows is not compared", "0 * x")]),
    ("runtime/training/rank_command.cpp", "hash_of", "array.size() * sizeof(float)", [("the model is not compared", "0 * x")]),
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
    # Tables have no example that is not finite.
    ("kernels/fused/candidates.cuh", "clip_factors(clip_settings(a.clip, *a.sum_scale), squares, layers, factors, size) < INFINITY", "factor 0 in place of a skip"): "All/FusedStep*",
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
    # Class weights of images and texts.
    ("kernels/fused/candidates.cuh", "label", "the first class's weight"): "*.WeighsClasses",
    ("kernels/fused/candidates.cuh", "a.task", "the class weight before the clipping"): "*.WeighsClasses",
    ("kernels/fused/candidates.cuh", "a.task", "the class weight not in the loss"): "*.WeighsClasses",
    ("kernels/fused/candidates.cuh", "transforms", "the class weight after transformed gradients are clipped"): "*.WeighsClasses",
    # Class weights of networks without a fused kernel.
    ("runtime/device/cuda/step_sum.cpp", "Weighted::factors", "the class weight before the clipping"): "CudaClassWeights*",
    ("runtime/device/cuda/norms.cpp", "Weighted::loss", "norms without the class weight"): "CudaClassWeights*",
    # Random tables have no such cells.
    ("runtime/data/row_encoder.cpp", "malformed_ == Malformed::missing", "a cell that cannot be read is refused"): "*MalformedRows*",
}

LISTS = "FusedLists*:FusedPlanes*:TensorStep*"  # the fused kernel of lists of layers

# Files of kernels that tests of their own look at, example by example; after a space, others where those find nothing.
TESTS_OF_FILES = {
    "runtime/data/share.hpp": "*RankedEngine*:RankedTraining*",
    "runtime/data/range.cpp": "Ranges*",
    "runtime/data/cifar.cpp": "Ranges*",
    "runtime/data/images.cpp": "Ranges*",
    "runtime/data/glyphs.cpp": "Ranges*",
    "runtime/data/sentences.cpp": "Ranges*",
    "runtime/run/follow.cpp": "RankedTraining*",
    "runtime/training/rank_command.cpp": "RankedTraining*",
    "kernels/contribution/coordinates_math.hpp": "All/FusedTransformed*",
    "kernels/fused/sums.cuh": LISTS + " All/FusedTransformed*:All/FusedStep*",
    "kernels/fused/head.cuh": LISTS,
    "kernels/fused/forward.cuh": LISTS,
    "kernels/fused/backward.cuh": LISTS,
    "kernels/fused/pool.cuh": LISTS,
    "kernels/step/packed_image.cuh": LISTS,
    "kernels/step/update.cuh": "All/Tf32Presets*",
    "kernels/fused/dense_rows.cuh": "All/FusedTransformed*:All/FusedStep* CudaTargets*:CudaClassWeights*",
    "kernels/layers/loss_math.hpp": "CudaTargets*",
    "kernels/layers/loss.cuh": "CudaTargets*:CudaClassWeights*",
    "kernels/contribution/clip.cuh": "CudaClassWeights*",
    "kernels/step/sample.cuh": "CudaHoldOut*",
    "kernels/step/allocation.cuh": "CudaHoldOut*",
    "runtime/device/cuda/layer_wise.cu": "CudaClassWeights*",
    "runtime/device/cuda/engine_parts.cpp": "CudaHoldOut*",
    "kernels/fused/recurrent_block.cuh": "TextStep*",
    "kernels/fused/recurrent_steps.cuh": "TextStep*",
    "kernels/fused/recurrent_head.cuh": "TextStep*",
    "kernels/fused/recurrent_sums.cuh": "TextStep*",
    "kernels/layers/recurrent.cuh": "Cuda/TextEngine*:CudaTexts.ThePreset*",
    "kernels/layers/recurrent_half.cuh": "*CudaSteps*",
    "kernels/common/loss_exponent.cuh": "*CudaSequence*:CudaPatch*",
    "kernels/layers/recurrent_batch.cuh": "CudaTexts.ALibrary*",
    "kernels/layers/embedding.cuh": "Cuda/TextEngine*:CudaTexts.ThePreset*",
    "kernels/layers/mean_over_time.cuh": "Cuda/TextEngine*:CudaTexts.ThePreset*",
    "kernels/products/half_tile.cuh": "*CudaSequence*:CudaPatch.*",
    "kernels/products/text_product.cuh": "*CudaTextProduct*",
    "kernels/products/chunk.cuh": "CudaPatch*",
    "kernels/products/patch_gradient.cuh": "CudaPatch.*",
    "kernels/products/patch_product.cuh": "CudaPatchProduct*",
    "kernels/products/tiled_product.cuh": "*CudaProduct*",
    "kernels/products/tiled_product.hpp": "GradientStripes*",
    "kernels/products/sequence_gradient.cuh": "*CudaSequence* Cuda/TextEngine*:CudaTexts.ThePreset*",
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
  runtime/device/class_weights_test.cpp runtime/device/cuda_training_test.cpp kernels/sample_test.cpp kernels/cuda_fused_test.cpp kernels/cuda_kernels_test.cpp kernels/cuda_sequence_test.cpp kernels/fused_kernel_test.cpp kernels/fused_lists_test.cpp kernels/recurrent_kernel_test.cpp kernels/cuda_recurrent_test.cpp
  runtime/data/table_reader_test.cpp runtime/data/ranges_test.cpp runtime/data/units_test.cpp runtime/methods/norm_bound_test.cpp
  runtime/results/holdout_figures_test.cpp support/test_files.cpp runtime/ranks/ranked_engine_test.cpp runtime/ranks/ranked_training_test.cpp runtime/ranks/ranked_cuda_test.cpp
  runtime/device/text_engine_test.cpp runtime/training/tf32_presets_test.cpp support/distributions.cpp support/fill_scratch.cpp
  support/recomputed_clipping.cpp support/recomputed_coordinates.cpp support/recomputed_importance.cpp
  support/recomputed_linear.cpp support/recomputed_statistics.cpp support/recomputed_sums.cpp support/simt/emulator.cpp support/simt/tensor_core.cpp
  support/test_device.cpp)
target_link_libraries(cudp_fault_tests PRIVATE cudp_emulated_cuda cudp_reproductions cudp_runtime CLI11::CLI11 GTest::gtest_main)
target_include_directories(cudp_fault_tests PRIVATE support/simt)
"""


class Fault:
    """A place, and how its expression is changed."""

    def __init__(self, place, kind):
        self.place = place
        self.file, self.function, expression, _, *reached = PLACES[place]
        self.expression = parts_of(expression)[1]
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


def without_comments(source, strings=True):
    """The source with spaces for comments, preprocessor lines and, unless `strings`, texts in quotes."""
    string = r'"(?:\\.|[^"\\\n])*"'
    other = r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"

    def spaces(found):
        is_kept = strings and found.group(0)[0] in "\"'"
        return found.group(0) if is_kept else re.sub(r"[^\n]", " ", found.group(0))
    return re.sub(f"{string}|{other}", spaces, source, flags=re.DOTALL | re.MULTILINE)


def name_in(header):
    """The name of the function that a header without a body declares; None if it declares none."""
    header = re.sub(r"\b(__\w+__|alignas|requires|decltype|noexcept)\s*\((?:[^()]|\([^()]*\))*\)", "", header)
    name = re.search(r"((?:\w+::)*operator(?:\(\)|[^\w\s(]+|\s+\w+)|~?[\w:]+)\s*\(", header)
    return name.group(1) if name and not header.rstrip().endswith("=") else None


def functions_of(source):
    """The functions that a source defines: the name, with its classes, and where it begins and ends."""
    text = without_comments(source, strings=False)
    functions, scopes = [], []  # a scope: its kind, its name, where its header begins
    start = parentheses = 0
    for at, c in enumerate(text):
        inside = bool(scopes) and scopes[-1][0] in ("function", "block")
        if c in "()":
            parentheses += 1 if c == "(" else -1
        elif c == ";" and not parentheses and not inside:
            start = at + 1
        elif c == "{":
            header = text[start:at]
            named = re.search(r"\b(namespace|class|struct|union|enum)\b[^;()=]*$", header)
            if parentheses or inside:
                scopes.append(("block", None, start))
            elif named:
                words = re.findall(r"\b(?:namespace|class|struct|union|enum)\s+([\w:]+)", header)
                is_class = named.group(1) != "namespace" and words
                scopes.append(("class" if is_class else "namespace", words[-1] if words else "", start))
                start = at + 1
            else:
                scopes.append(("function" if name_in(header) else "block", name_in(header), start))
        elif c == "}" and scopes:
            kind, name, begin = scopes.pop()
            if kind == "function":
                if re.match(r"\s*[,{(]", text[at + 1:]) and re.search(r"\)\s*:", text[begin:at]):
                    continue  # the braces of a member's first value: the body follows
                classes = [of for k, of, _ in scopes if k == "class"]
                functions.append(("::".join(classes + [name]), begin, at + 1))
            if kind != "block":
                start = at + 1
    return functions


def parts_of(expression):
    """What stands before an expression, itself, and what stands behind it."""
    before, at, rest = expression.partition("@")
    if not at:
        return "", expression, ""
    inner, _, after = rest.partition("@")
    return before, inner, after


def spots_of(source, functions, name, expression):
    """Where the expression stands in functions of this name."""
    def pattern(part):
        return r"\s*".join(map(re.escape, re.findall(r"\w+|\"(?:\\.|[^\"\\])*\"|\S", part)))
    before, inner, after = map(pattern, parts_of(expression))
    wanted = re.compile(rf'{before}\s*(?<![\w.>"])({inner})(?![\w(])\s*{after}')
    text = without_comments(source)
    return sorted({found.span(1) for of, begin, end in functions if f"::{of}".endswith(f"::{name}")
                   for found in wanted.finditer(text, begin, end)})


def changed_sources():
    """The text of every file by its name, with all faults in it."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {}
    for name in files.stdout.split("\n"):
        if name and (ROOT / name).is_file():
            texts[name] = (ROOT / name).read_bytes()
    places, functions, wrong = {}, {}, []
    for number, (name, function, expression, kinds, *_) in enumerate(PLACES):
        source = texts.get(name, b"").decode()
        if name not in functions:
            functions[name] = functions_of(source)
        found = spots_of(source, functions[name], function, expression)
        if len(found) != 1:
            wrong.append(f"{name}, {function}: expected once, found {len(found)} times: {expression}")
            continue
        scope = "cudp::" if re.search(r"\bfault\(", source) else ""  # a file with a fault() of its own
        before, after = f"{scope}fault({number}, ", ")"
        for kind in kinds:
            if isinstance(kind, str):
                continue
            before = f'{scope}fault_as({number}, "{kind[0]}", ' + before
            after += f", [&]([[maybe_unused]] auto x) {{ return {kind[1]}; }})"
        places.setdefault(name, []).append((*found[0], before, after))
    if wrong:
        sys.exit("\n".join(f"faults.py: {line}" for line in wrong))
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
        run = subprocess.run([build / "tests/cudp_fault_tests", "--gtest_brief=1", "--gtest_fail_fast", "--gtest_filter=" + tests],
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
