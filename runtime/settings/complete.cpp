#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/listed.hpp"
#include "runtime/config/fine_tuning.hpp"
#include "runtime/config/report_options.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/settings.hpp"

namespace cudp {
namespace {

/// Returns whether the data set is given as a table file, judged by the ending of its name.
bool is_table_file(const std::string& dataset) {
  for (const char* const ending : {".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.xz", ".tsv.xz"})
    if (dataset.ends_with(ending)) return true;
  return false;
}

/// Throws InputError with the names of all missing settings if there are two or more. A single
/// missing setting is found by other checks, with a message of their own.
void check_not_much_missing(const TrainConfig& c, const MethodEntry& method) {
  std::vector<std::string> missing;
  if (c.dataset.empty()) missing.emplace_back("--dataset");
  if (method.gives_privacy && !c.epsilon && !c.sigma) missing.emplace_back("--epsilon");
  if (method.gives_privacy && !c.delta) missing.emplace_back("--delta");
  if (c.schema.empty() && is_table_file(c.dataset)) missing.emplace_back("--schema");
  if (missing.size() < 2) return;
  throw InputError("expected " + listed(missing) + ", found none of them; " +
                   (c.dataset.empty() ? "a preset has them all (--preset NAME)"
                                      : "they may be in a file, too (--config FILE)"));
}

/// Returns the names of methods with adaptive learning rates, separated by commas.
std::string adaptive_methods() {
  std::string names;
  for (const MethodEntry& m : methods())
    if (m.adapts_step_size) names += (names.empty() ? "" : ", ") + m.name;
  return names;
}

/// Throws InputError if the config lacks a setting that the privacy guarantee needs.
void check_budget_given(const TrainConfig& c, const MethodEntry& method) {
  if (!c.epsilon && !c.sigma)
    throw InputError(
        "--epsilon: expected a privacy budget (or --sigma), here or from --config or --preset, "
        "found none");
  if (!c.epsilon && !takes(method, "sigma"))
    throw InputError("--epsilon: expected a privacy budget with --method " + c.method +
                     ", found none");
  const bool size_is_public = is_named_dataset(c.dataset) || c.size_is_public;
  if (!c.epsilon && !size_is_public)
    throw InputError(
        "--sigma needs --epsilon too: the number of training examples is private, and the epsilon "
        "that follows from sigma would reveal it. Give --epsilon, or --size-is-public if the "
        "number "
        "is public");
  if (c.fresh_noise_allowed && !c.epsilon)
    throw InputError(
        "--fresh-noise-allowed needs --epsilon too: a filter has to keep the run within a budget");
  if (c.accountant == privacy::AccountantKind::advanced && !size_is_public)
    throw InputError(
        "--accountant: expected pld or rdp if the number of training examples is private "
        "(--size-is-public if it is not), found advanced");
  if (!c.delta)
    throw InputError(
        "--delta: expected a number in (0, 1), here or from --config or --preset, found none");
  if (!c.allow_weak_privacy && *c.delta >= kMaxDelta)
    throw InputError("--delta: expected below 0.1 (--allow-weak-privacy), found " +
                     value_text(*c.delta));
  if (!c.allow_weak_privacy && c.epsilon && *c.epsilon > kMaxEpsilon)
    throw InputError("--epsilon: expected at most 200 (--allow-weak-privacy), found " +
                     value_text(*c.epsilon));
}

/// Throws InputError if rows cannot be held out with these settings, or if the budget for releasing
/// their test metrics is incomplete or unreasonable.
void check_holdout(const TrainConfig& c, const MethodEntry& method) {
  if (!method.gives_privacy)
    throw InputError("--holdout: expected a method with privacy, found --method " + c.method +
                     "; --test-data FILE gives it a test set");
  if (is_named_dataset(c.dataset))
    throw InputError("--holdout: expected rows of your own, found --dataset " + c.dataset +
                     ", which has test rows");
  if (!c.test_data.empty())
    throw InputError("--holdout: expected no --test-data with it, found " + c.test_data);
  if (c.test_data_is_public)
    throw InputError(
        "--holdout: expected no --test-data-is-public with it, because held-out rows are as "
        "private "
        "as the others");
  if (c.size_is_public)
    throw InputError(
        "--holdout: expected no --size-is-public with it, because the number of rows trained on "
        "follows from secret random draws");
  if (c.holdout_epsilon.has_value() != c.holdout_delta.has_value())
    throw InputError(std::string("--holdout-") + (c.holdout_epsilon ? "delta" : "epsilon") +
                     ": expected with --holdout-" + (c.holdout_epsilon ? "epsilon" : "delta") +
                     ", found none");
  if (c.allow_weak_privacy || !c.holdout_epsilon) return;
  if (*c.holdout_delta >= kMaxDelta)
    throw InputError("--holdout-delta: expected below 0.1 (--allow-weak-privacy), found " +
                     value_text(*c.holdout_delta));
  if (*c.holdout_epsilon > kMaxEpsilon)
    throw InputError("--holdout-epsilon: expected at most 200 (--allow-weak-privacy), found " +
                     value_text(*c.holdout_epsilon));
}

/// Throws InputError if the config combines random allocation with an accountant, --steps or
/// --sigma that does not allow it. Called only if random allocation is chosen.
void check_allocation(const TrainConfig& c, const MethodEntry& method) {
  if (method.gives_privacy && c.accountant != privacy::AccountantKind::best &&
      c.accountant != privacy::AccountantKind::pld)
    throw InputError("--sampling: expected poisson with --accountant " +
                     std::string(privacy::name(c.accountant)) + " (method " + c.method +
                     "), which has no bound for allocation, found allocation");
  if (c.steps)
    throw InputError(
        "--steps: expected none with --sampling allocation, which is paid for by whole epochs; "
        "type --epochs N");
  if (method.gives_privacy && c.sigma && c.epsilon && !c.size_is_public &&
      !is_named_dataset(c.dataset))
    throw InputError(
        "--sigma: expected none with --epsilon and --sampling allocation if the number of training "
        "examples is private; leave it out, or pass --size-is-public if the number is public");
}

}  // namespace

void check_complete(TrainConfig& c) {
  const MethodEntry& method = method_entry(c.method);
  check_not_much_missing(c, method);
  if (c.dataset.empty())
    throw InputError("--dataset: expected a data set, found none (glyphs needs no files)");
  if (method.gives_privacy) check_budget_given(c, method);
  if (c.of<ReportOptions>().holdout_threshold && !c.holdout)
    throw InputError("--holdout-threshold: expected --holdout with it, found none");
  if (c.holdout) check_holdout(c, method);
  if (const FineTuning& f = c.of<FineTuning>(); f.init.empty() && !f.freeze.empty())
    throw InputError(
        "--freeze: expected --init FILE with it, since weights that are drawn at random are not "
        "worth keeping, found none");
  if (method.complete != nullptr) method.complete(c);
  if (c.sampling == Sampling::allocation) check_allocation(c, method);
  if (c.schedule == ScheduleKind::adaptive && !method.adapts_step_size)
    throw InputError("--schedule: expected method " + adaptive_methods() +
                     " for adaptive step sizes");
  if (c.feature_standardise && c.features != Features::scatter)
    throw InputError("--feature-standardise: expected --features scatter");
  const bool release = c.features == Features::pca || c.feature_standardise;
  if (release && !c.feature_sigma && !c.epsilon)
    throw InputError(
        "--feature-sigma: expected a noise multiplier where there is no --epsilon to share, found "
        "none");
}

}  // namespace cudp
