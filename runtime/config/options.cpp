#include "runtime/config/options.hpp"

#include <utility>

#include "runtime/config/option_rows.hpp"

namespace cudp {
namespace {

using namespace option_rows;

std::vector<Option> data_options() {
  return {
      text("dataset", "NAME", &Config::dataset,
           "glyphs (built in), mnist, fashion-mnist, cifar-10, adult, bank, ipums-br, or a path to "
           "a folder or table"),
      machine(
          text("data-dir", "DIR", &Config::data_dir, "where the files of a named data set are")),
      text("schema", "FILE", &Config::schema, "schema of a table"),
      text("test-data", "FILE", &Config::test_data,
           "test table of a table given by path; without one nothing is measured"),
      toggle(
          "test-data-is-public", &Config::test_data_is_public,
          "the test rows are public, so that accuracies may be published; otherwise they stay in "
          "the run's private folder"),
      toggle("size-is-public", &Config::size_is_public,
             "the number of training examples is public; otherwise a noisy one is used and paid "
             "for"),
      toggle("accept-private-bounds", &Config::accept_private_bounds,
             "scale numbers by bounds read from the private data (unsafe)"),
      choice(
          "features", &Config::features,
          {{"none", Features::none}, {"scatter", Features::scatter}, {"pca", Features::pca}},
          "what the model sees of an example: none (as it is), scatter (ScatterNet, of images) or "
          "pca (principal components, paid for from the budget)"),
      integer("feature-groups", "N", &Config::feature_groups, kCountOrZero,
              "scatter: groups of channels normalised within each example's features, 0: none"),
      toggle("feature-standardise", &Config::feature_standardise,
             "scatter: standardise channels by a noisy mean and variance, paid for from the "
             "budget, in place of feature-groups"),
      number("feature-second-order", "S", &Config::feature_second_order, kUnitPositive,
             "standard deviation of standardised channels of order 2, beside 1 of the others: most "
             "channels are of order 2, and the weakest"),
      integer("feature-dimensions", "N", &Config::feature_dimensions, kCount,
              "pca: how many components"),
      toggle("feature-whiten", &Config::feature_whiten,
             "pca: scale components to equal noisy variance, which costs nothing more"),
      instead_of("feature-noise", number("feature-share", "S", &Config::feature_share, kInsideUnit,
                                         "share of the budget for what features rest on, as "
                                         "Gaussian noise counts it (1 / sigma^2)")),
      instead_of("feature-noise", number("feature-sigma", "S", &Config::feature_sigma, kPositive,
                                         "noise multiplier of what features rest on: pca's "
                                         "covariance or the channels' moments")),
      machine(text("feature-cache", "DIR", &Config::feature_cache,
                   "where computed features are kept, readable by their owner only: a folder, auto "
                   "(~/.cache/cudp) or none")),
  };
}

std::vector<Option> model_options() {
  return {
      text("model", "NAME", &Config::model,
           "cnn, cifar-cnn, scatter-cnn, scatter-cifar-cnn, scatter-linear, mlp, logistic, svm, or "
           "a .toml file of layers"),
      text("activation", "NAME", &Config::activation,
           "what the model's `activation` layers are: relu, tanh or tempered-sigmoid"),
  };
}

std::vector<Option> privacy_options() {
  return {
      instead_of("noise", number("epsilon", "E", &Config::epsilon, kPositive,
                                 "privacy budget; the noise is calibrated to it")),
      number("delta", "D", &Config::delta, kInsideUnit, "probability outside of the promise"),
      instead_of("noise", number("sigma", "S", &Config::sigma, kPositive,
                                 "noise multiplier: standard deviation / sensitivity")),
      choice("accountant", &Config::accountant,
             {{"pld", privacy::Accountant::best},
              {"rdp", privacy::Accountant::rdp},
              {"advanced", privacy::Accountant::advanced}},
             "what bounds epsilon: pld (or any bound that is lower), rdp alone, or advanced "
             "composition, for comparison"),
      number("clip", "C", &Config::clip, kPositive,
             "bound on one example's gradient norm; adaclip: 1, on its own scale; "
             "dp-agd: 3"),
      choice("clipping", &Config::clipping,
             {{"flat", Clipping::flat},
              {"per-layer", Clipping::per_layer},
              {"automatic", Clipping::automatic}},
             "how gradients are bounded: flat, per-layer or automatic (normalised)"),
      choice("rng", &Config::rng,
             {{"chacha20", Generator::chacha20}, {"philox", Generator::philox}},
             "generator of sampling and noise: chacha20 or philox"),
      integer(
          "seed", "S", &Config::seed, kSeed,
          "reproducible run; anyone who knows the seed can subtract the noise, so it is not for "
          "release"),
      toggle("unsafe-diagnostics", &Config::unsafe_diagnostics,
             "show and keep training loss, clipped share and norms: not private"),
      toggle(
          "allow-weak-privacy", &Config::allow_weak_privacy,
          "train with epsilon above 200 or delta of 0.1 and more, which promise next to nothing; "
          "the certificate says so"),
  };
}

std::vector<Option> training_options() {
  return {
      choice("method", &Config::method,
             {{"dpsgd", MethodKind::dpsgd},
              {"dpsgd-ts", MethodKind::dpsgd_ts},
              {"dpsgd-decay", MethodKind::dpsgd_decay},
              {"adp-sgd", MethodKind::adp_sgd},
              {"adaclip", MethodKind::adaclip},
              {"dpis", MethodKind::dpis},
              {"sgd-ma", MethodKind::sgd_ma},
              {"sgd-adv", MethodKind::sgd_adv},
              {"norm-bound", MethodKind::norm_bound},
              {"dp-agd", MethodKind::dp_agd},
              {"outpert", MethodKind::outpert},
              {"objpert", MethodKind::objpert},
              {"privgene", MethodKind::privgene}},
             "training method: dpsgd, dpsgd-ts, dpsgd-decay, adp-sgd, adaclip, dpis, sgd-ma, "
             "sgd-adv, norm-bound, dp-agd, outpert, objpert or privgene"),
      command(text("preset", "NAME", &Config::preset, "tuned settings to start from")),
      integer("batch", "B", &Config::batch, kCount, "expected batch size"),
      instead_of("length",
                 integer("epochs", "N", &Config::epochs, kCount, "length of the training")),
      instead_of("length", integer("steps", "N", &Config::steps, kCount, "the same, in steps")),
      number("lr", "LR", &Config::lr, kPositive, "learning rate"),
      choice("optimizer", &Config::optimizer,
             {{"sgd", OptimizerKind::sgd},
              {"momentum", OptimizerKind::momentum},
              {"nesterov", OptimizerKind::nesterov},
              {"adam", OptimizerKind::adam},
              {"adamw", OptimizerKind::adamw}},
             "sgd, momentum, nesterov, adam or adamw"),
      number("momentum", "M", &Config::momentum, kBelowOne, "of momentum and nesterov"),
      number("beta1", "B", &Config::beta1, kBelowOne, "of adam and adamw"),
      number("beta2", "B", &Config::beta2, kBelowOne, "of adam and adamw"),
      number("weight-decay", "W", &Config::weight_decay, kNotNegative, "pull towards zero"),
      choice("schedule", &Config::schedule,
             {{"constant", ScheduleKind::constant},
              {"step", ScheduleKind::step},
              {"cosine", ScheduleKind::cosine},
              {"polynomial", ScheduleKind::polynomial},
              {"square-root", ScheduleKind::square_root},
              {"adaptive", ScheduleKind::adaptive}},
             "learning rate over time: constant, step, cosine, polynomial, square-root (lr - a "
             "sqrt(t), nothing at the end) or adaptive (of adp-sgd)"),
      integer("decay-every", "N", &Config::decay_every, kCount, "step: epochs between decays"),
      number("decay-factor", "F", &Config::decay_factor, kInsideUnit, "step: factor of a decay"),
      number("final-lr", "F", &Config::final_lr, kUnit, "cosine: share of lr left at the end"),
      number("poly-a", "A", &Config::poly_a, kPositive,
             "polynomial: lr / sqrt(a + c t), t in steps"),
      number("poly-c", "C", &Config::poly_c, kNotNegative, "polynomial: see poly-a"),
      number("adaptive-start", "B", &Config::adaptive_start, kPositive,
             "adaptive: lr / b, where b^2 starts here"),
      number(
          "adaptive-weight", "W", &Config::adaptive_weight, kPositive,
          "adaptive: b^2 grows by max(W / (1 + t), 1) |g|^2, g the released gradient, t in steps "
          "of the epoch"),
      number("adaptive-least", "NU", &Config::adaptive_least, kPositive,
             "adaptive: and by no less than this"),
      integer("warmup", "N", &Config::warmup, kCountOrZero, "steps of linear warm-up"),
      number("ema", "D", &Config::ema, kBelowOne,
             "release an exponential average of the weights with this decay; 0: the last weights"),
  };
}

std::vector<Option> method_options() {
  return {
      number("noise-decay", "K", &Config::noise_decay, kNotNegative,
             "dpsgd-decay: noise sigma exp(-K t), t in epochs"),
      toggle("adp-constant-noise", &Config::adp_constant_noise,
             "adp-sgd: the same noise at every step, which is dpsgd with adp-sgd's step sizes"),
      number("adp-noise-growth", "C", &Config::adp_noise_growth, kNotNegative,
             "adp-sgd with schedule adaptive: noise sigma (b^2 + C t)^(1/4), b^2 adaptive-start"),
      choice("calibration", &Config::calibration,
             {{"accountant", Calibration::accountant}, {"theorem41", Calibration::theorem41}},
             "where sigma comes from: accountant, or theorem41 of the paper of adp-sgd"),
      number("adaclip-beta1", "B", &Config::adaclip_beta1, kUnit,
             "adaclip: memory of the gradients' mean"),
      number("adaclip-beta2", "B", &Config::adaclip_beta2, kUnit,
             "adaclip: memory of their variance"),
      number("adaclip-least", "H1", &Config::adaclip_least, kVariance,
             "adaclip: least variance of a coordinate"),
      number("adaclip-most", "H2", &Config::adaclip_most, kVariance,
             "adaclip: most variance of a coordinate; tune this one"),
      toggle("adaclip-literal", &Config::adaclip_literal,
             "adaclip: the paper's variance estimate, for batches of one"),
      number("dpis-multiple", "K", &Config::dpis_multiple, kMultiple,
             "dpis: candidates for each example of the batch"),
      number("dpis-floor", "F", &Config::dpis_floor, kUnitPositive,
             "dpis: least norm that examples are drawn by, a share of the clipping norm"),
      number("dpis-total-noise", "S", &Config::dpis_total_noise, kUnitPositive,
             "dpis: noise on the sum of norms, a share of the number of examples"),
      number("dpis-first-phase", "A", &Config::dpis_first_phase, kUnit,
             "dpis: share of the epochs that save for the worst case"),
      toggle("dpis-adaptive-clip", &Config::dpis_adaptive_clip,
             "dpis: from the second epoch on, clip to the noisy mean norm"),
      number("dpis-lambda", "L", &Config::dpis_lambda, kPositive,
             "dpis: times this, with dpis-adaptive-clip"),
  };
}

std::vector<Option> dp_agd_options() {
  return {
      number("splits", "N", &Config::splits, kNotNegative,
             "about how many iterations the budget is for; 0: one a hundredth of examples x "
             "epsilon, or 60 with budget-split epsilon"),
      choice("budget-split", &Config::budget_split,
             {{"rho", BudgetSplit::rho}, {"epsilon", BudgetSplit::epsilon}},
             "what is split: rho, or epsilon as in the paper"),
      number("gradient-share", "S", &Config::gradient_share, kInsideUnit,
             "part of an iteration's rho for its gradient, the rest is for its step size"),
      number("gamma", "G", &Config::gamma, kPositive,
             "growth of a gradient's budget where no step size helps"),
      number("step-shrink", "F", &Config::step_shrink, kShrink,
             "factor on the step sizes where none helps; 1 as in the paper"),
      number("loss-clip", "C", &Config::loss_clip, kPositive,
             "bound on one example's loss; also of privgene"),
      number("l2", "L", &Config::l2, kNotNegative,
             "regularisation, lambda/2 |w|^2 an example; also of outpert and objpert"),
      choice("noisy-min", &Config::noisy_min,
             {{"gumbel", SelectionNoise::gumbel}, {"laplace", SelectionNoise::laplace}},
             "noise on the candidate step sizes: gumbel, or laplace as in the paper"),
      choice("conversion", &Config::conversion,
             {{"tight", Conversion::tight}, {"classical", Conversion::classical}},
             "from zCDP to epsilon: tight, or classical as in the paper"),
      integer("mini-batch", "B", &Config::mini_batch, kCountOrZero,
              "expected examples an iteration looks at, for large sets; 0: all"),
  };
}

std::vector<Option> linear_options() {
  return {
      number("max-norm", "R", &Config::max_norm, kPositive,
             "outpert, objpert: examples longer than this, with a constant 1, are scaled down to "
             "it; 1 makes all of them as long"),
      number("huber", "H", &Config::huber, kUnitPositive,
             "outpert, objpert: how far the hinge loss is rounded to each side of its corner"),
      number("solver-tolerance", "T", &Config::solver_tolerance, kUnitPositive,
             "outpert, objpert: largest gradient at the minimum found; noise covers it"),
      integer("generations", "N", &Config::generations, kCountOrZero,
              "privgene: how many; 0: examples x epsilon / (800 parents), at least 8"),
      integer("candidates", "N", &Config::candidates, kCount, "privgene: models a generation"),
      integer("parents", "N", &Config::parents, kCount, "privgene: models it leaves children of"),
  };
}

std::vector<Option> machine_options() {
  return {
      choice("device", &Config::device,
             {{"auto", Device::automatic}, {"cpu", Device::cpu}, {"cuda", Device::cuda}},
             "auto, cpu or cuda"),
      choice("precision", &Config::precision,
             {{"tf32", Precision::tf32}, {"fp32", Precision::fp32}},
             "matrix products on CUDA: tf32 (tensor cores, for layers that gain from it) or fp32; "
             "the CPU and small networks have fp32 alone, and the run's config says what it had"),
      machine(integer("threads", "N", &Config::threads, kThreads,
                      "CPU threads, 0 for every core; the result does not depend on it")),
      machine(integer("micro-batch", "N", &Config::micro_batch, kCountOrZero,
                      "examples in flight, 0 to choose; the result does not depend on it")),
  };
}

std::vector<Option> output_options() {
  return {
      command(text("config", "FILE", &Config::config, "TOML file with these keys")),
      command(text("out", "DIR", &Config::out, "run folder; runs/DATASET-MODEL-TIME if not given")),
      command(text("resume", "DIR", &Config::resume, "continue the interrupted run in DIR")),
      command(
          toggle("fresh-noise", &Config::fresh_noise,
                 "resume with a new random key, and pay again for the steps since the last "
                 "checkpoint: where data, program or processor are not those that the run began "
                 "with")),
      machine(integer("eval-every", "N", &Config::eval_every, kCountOrZero,
                      "epochs between test evaluations; 0: only at the end")),
      machine(integer("checkpoint-every", "N", &Config::checkpoint_every, kCountOrZero,
                      "steps between checkpoints; 0: about every 20 seconds")),
      command(toggle("json", &Config::json, "print only the result, as JSON, on stdout")),
      command(toggle("quiet", &Config::quiet, "no progress, only warnings")),
  };
}

}  // namespace

const std::vector<Option>& train_options() {
  static const std::vector<Option> table = [] {
    std::vector<Option> all;
    const auto add = [&](const char* group, std::vector<Option> rows) {
      for (Option& o : rows) {
        o.group = group;
        all.push_back(std::move(o));
      }
    };
    add("Data", data_options());
    add("Model", model_options());
    add("Privacy", privacy_options());
    add("Training", training_options());
    add("Methods", method_options());
    add("DP-AGD", dp_agd_options());
    add("Linear baselines", linear_options());
    add("Machine", machine_options());
    add("Output", output_options());
    return all;
  }();
  return table;
}

const Option* find_option(std::string_view key) {
  for (const Option& o : train_options())
    if (o.key == key) return &o;
  return nullptr;
}

std::vector<std::string> option_keys() {
  std::vector<std::string> keys;
  for (const Option& o : train_options()) keys.push_back(o.key);
  return keys;
}

}  // namespace cudp
