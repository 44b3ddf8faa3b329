#include "runtime/training/before_count.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/methods/method_context.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/table_defaults.hpp"

namespace cudp {
namespace {

/// A noise multiplier so large that the noisy sums of a plan cost almost nothing. Used for plans in
/// which only other releases matter.
constexpr double kPlentyOfNoise = 1024.0;
/// For methods whose noise depends on the step sizes of a schedule: largest number of examples for
/// which plans are tried, as a multiple of the batch size (see max_count()).
constexpr double kMostBatches = 4096.0;
/// Largest number of examples for which plans are tried. max_count() returns a smaller limit if a
/// training on that many examples would have more than kMostSteps steps.
constexpr double kMostExamples = 0x1p32;
/// Largest number of steps of a training for which plans are tried.
constexpr double kMostSteps = 0x1p22;
/// Maximum number of privacy plans that are made to find the numbers of examples for which --sigma
/// suffices.
constexpr int kMostPlans = 200;

/// A range of possible numbers of training examples, both ends included.
struct Counts {
  double low = 1.0;
  double high = 1.0;
};

/// A range of numbers of examples for which the privacy plan fails. For every larger number it does
/// not fail, up to the resolution of the search.
struct RefusedCounts {
  Counts counts;
  std::exception_ptr reason;
};

/// Returns the message of an exception if it is a BudgetError; "" for other exceptions, and for
/// null.
std::string budget_reason(const std::exception_ptr& refusal) {
  try {
    if (refusal != nullptr) std::rethrow_exception(refusal);
  } catch (const BudgetError& e) {
    return e.what();
  } catch (const Error&) {
    return "";
  }
  return "";
}

/// Makes privacy plans for possible numbers of examples, to find the numbers for which a training
/// would exceed its budget.
class Plans {
 public:
  Plans(const Experiment& e, double noise, const privacy::Ledger& counted)
      : e_(e), noise_(noise), counted_(counted) {}

  /// Returns the exception that making the privacy plan for this number of examples throws; null if
  /// the plan can be made.
  std::exception_ptr refusal(const TrainConfig& config, double count) const {
    return refusal_of([&] { make_quickly(chosen(config, count), count, {}); });
  }

  /// If the privacy plan fails for all numbers of examples that are tried, returns the exception
  /// for the last of them, max_count(). Otherwise returns null.
  std::exception_ptr refusal_of_all(const TrainConfig& config) const {
    const double batch = batch_of(config);
    std::exception_ptr reason;
    for (const double count :
         {32.0 * batch, 2.0 * batch, 512.0 * batch, kMostBatches * batch, max_count(config)}) {
      reason = refusal(config, count);
      if (reason == nullptr) break;
    }
    return reason;
  }

  /// Returns the range of numbers of examples for which --sigma must suffice. It begins at the
  /// batch size, because a training with fewer examples fails anyway.
  Counts all_counts(const TrainConfig& config) const {
    const bool open = chosen(config, kMostExamples).batch != config.batch;
    return {open ? kTableBatches : batch_of(config), max_count(config)};
  }

  /// Searches `counts` for the largest numbers of examples for which the privacy plan exceeds the
  /// budget; returns nullopt if there are none.
  ///
  /// Numbers with the same batch size, epochs and steps per epoch differ only in the sampling rate,
  /// which falls as the number grows; the smallest of them costs most, so only that one is tested.
  /// A range with several batch sizes or steps is first tested with a plan that costs at least as
  /// much as the plan of any number in it: it has the largest rate and the most steps. If that plan
  /// exceeds the budget, each half of the range is searched.
  std::optional<RefusedCounts> largest_refused(const TrainConfig& config, const Counts& counts) {
    const Worst worst = worst_of(config, counts);
    const std::exception_ptr reason = refusal(worst);
    if (reason == nullptr) return std::nullopt;
    const bool narrow = counts.high - counts.low <= counts.low / 256.0;
    if ((worst.is_exact && narrow) || plans_ >= kMostPlans) {
      // If the plan failed because the batch is larger than the number of examples, the noise is
      // not the reason.
      if (budget_reason(reason).empty()) return std::nullopt;
      return RefusedCounts{counts, reason};
    }
    const double middle =
        std::clamp(std::floor(std::sqrt(counts.low * counts.high)), counts.low, counts.high - 1.0);
    auto refused = largest_refused(config, {middle + 1.0, counts.high});
    return refused ? refused : largest_refused(config, {counts.low, middle});
  }

 private:
  /// A privacy plan that costs at least as much as the plan for any number of examples in a range.
  struct Worst {
    TrainConfig config;
    double count = 1.0;
    /// Numbers of steps per epoch to try; one of them is the most expensive.
    std::vector<std::uint64_t> epoch_steps;
    bool is_exact = false;  ///< whether it is exactly the plan for the smallest number of the range
  };

  static double batch_of(const TrainConfig& config) {
    return std::fmax(1.0, static_cast<double>(config.batch));
  }

  TrainingSize size_of(double count) const { return {count, noise_, e_.data.unit_rows}; }

  /// Returns the config that a training with this number of examples would have: for a table, with
  /// the batch size and epochs that choose_for_table() chooses for the number.
  TrainConfig chosen(TrainConfig config, double count) const {
    choose_for_table(config, size_of(count), e_.data.train, e_.network);
    return config;
  }

  /// Returns the largest number of examples for which plans are tried: kMostExamples, or less if
  /// its training would have more than kMostSteps steps. For a method whose noise follows the step
  /// sizes of a schedule it is kMostBatches times the batch size, because that noise grows with the
  /// number of steps and would exceed its limit.
  double max_count(const TrainConfig& config) const {
    if (method_entry(config.method).adapts_step_size)
      return std::fmin(kMostBatches * batch_of(config), kMostExamples);
    const TrainConfig last = chosen(config, kMostExamples);
    if (last.steps || last.batch != config.batch) return kMostExamples;
    return std::clamp(kMostSteps * batch_of(last) / static_cast<double>(*last.epochs),
                      batch_of(last), kMostExamples);
  }

  Worst worst_of(const TrainConfig& config, const Counts& counts) const {
    Worst worst{.config = chosen(config, counts.low), .count = counts.low, .epoch_steps = {}};
    const TrainConfig last = chosen(config, counts.high);
    TrainConfig& first = worst.config;
    const std::uint64_t low_steps = size_of(counts.low).steps_per_epoch(first.batch);
    std::uint64_t high_steps = size_of(counts.high).steps_per_epoch(last.batch);
    if (first.batch == last.batch) {
      worst.is_exact = low_steps == high_steps && first.epochs == last.epochs;
    } else {
      // The batch size is the number of examples / kTableBatches, rounded down. So the sampling
      // rate is largest, 1 / kTableBatches, if that number is a multiple of kTableBatches, and the
      // number of epochs, which grows with the rate, is then largest, too. An epoch has the most
      // steps just below the next multiple, where the batch size is still the smaller one.
      const double batch = std::floor(counts.low / kTableBatches);
      high_steps = static_cast<std::uint64_t>(std::ceil(kTableBatches * (batch + 1.0) / batch));
      first = chosen(config, kTableBatches * std::ceil(counts.low / kTableBatches));
      worst.count = kTableBatches * static_cast<double>(first.batch);
    }
    if (worst.is_exact) return worst;
    worst.epoch_steps = {high_steps};
    if (first.steps) {
      // At a fixed number of steps, longer epochs cost more with some methods and less with others,
      // so both lengths are tried.
      if (low_steps != high_steps) worst.epoch_steps.push_back(low_steps);
    } else {
      first.steps = *first.epochs * static_cast<std::int64_t>(high_steps);
      first.epochs.reset();
    }
    return worst;
  }

  std::exception_ptr refusal(const Worst& worst) {
    std::vector<std::optional<std::uint64_t>> all_epoch_steps(worst.epoch_steps.begin(),
                                                              worst.epoch_steps.end());
    if (worst.is_exact) all_epoch_steps = {std::nullopt};
    for (const std::optional<std::uint64_t> epoch_steps : all_epoch_steps) {
      ++plans_;
      if (auto reason = refusal_of([&] { make_quickly(worst.config, worst.count, epoch_steps); }))
        return reason;
    }
    return nullptr;
  }

  /// Makes the training method for `count` examples; throws if its plan exceeds the budget. First
  /// tries the faster, looser Renyi bound with 99 % of epsilon, which suffices unless the budget is
  /// almost spent. epoch_steps: as for make().
  void make_quickly(const TrainConfig& config, double count,
                    std::optional<std::uint64_t> epoch_steps) const {
    TrainConfig quick = config;
    if (quick.accountant == privacy::AccountantKind::pld ||
        quick.accountant == privacy::AccountantKind::best) {
      quick.accountant = privacy::AccountantKind::rdp;
      if (refusal_of([&] { make(quick, count, epoch_steps, 0.99); }) == nullptr) return;
    }
    make(config, count, epoch_steps, 1.0);
  }

  /// Makes the training method for `count` examples, with only the fraction `share` of the budget's
  /// epsilon. Throws if its plan costs more than that. epoch_steps: number of steps per epoch;
  /// nullopt to compute it from the number of examples.
  void make(const TrainConfig& config, double count, std::optional<std::uint64_t> epoch_steps,
            double share) const {
    MethodContext context = method_context(config, e_.network, size_of(count),
                                           e_.backend.arithmetic(e_.network), counted_);
    context.epoch_steps = epoch_steps;
    // A cache of this run alone is of no use: the run's own plan differs from these plans in its
    // noise. Other runs that share the cache make the same plans.
    if (e_.memo != nullptr && e_.memo->serves_several_runs()) context.memo = e_.memo;
    if (context.config.epsilon) *context.config.epsilon *= share;
    method_entry(config.method).make(context);
  }

  template <class Make>
  static std::exception_ptr refusal_of(const Make& make) {
    try {
      make();
      return nullptr;
    } catch (const Error&) {
      return std::current_exception();
    } catch (const std::logic_error& reason) {
      return std::make_exception_ptr(BudgetError(reason.what()));
    }
  }

  const Experiment& e_;
  double noise_;
  const privacy::Ledger& counted_;
  int plans_ = 0;
};

/// Throws BudgetError if a training with the noise multiplier in the settings (--sigma) would
/// exceed the budget for some number of examples.
void check_sigma(const Experiment& e, Plans& plans) {
  const TrainConfig& c = e.config;
  const std::exception_ptr refusal = plans.refusal_of_all(c);
  if (refusal != nullptr && budget_reason(refusal).empty()) std::rethrow_exception(refusal);
  const Counts all = plans.all_counts(c);
  const auto refused = plans.largest_refused(c, all);
  if (!refused) return;
  const std::string reason = budget_reason(refused->reason);
  const bool none = refused->counts.high == all.high;
  throw BudgetError(fmt::format(
      "--sigma: expected none with --epsilon, or one that keeps epsilon {:.6g} whatever the "
      "number of training examples is, which is private; found {:.6g}, which does not keep it "
      "{} {:.0f} examples ({}). "
      "Leave --sigma out: it follows from --epsilon and the noisy number{}",
      *c.epsilon, *c.sigma, none ? "even for" : "below about",
      refused->counts.high + (none ? 0.0 : 1.0), reason,
      c.holdout ? "" : "; or pass --size-is-public if the number is public"));
}

}  // namespace

void check_before_count(const Experiment& e, double noise, const privacy::Ledger& counted) {
  Plans plans(e, noise, counted);
  if (e.config.sigma) return check_sigma(e, plans);
  TrainConfig config = e.config;
  std::exception_ptr refusal;
  if (takes(method_entry(config.method), "sigma")) {
    config.sigma = kPlentyOfNoise;
    refusal = plans.refusal_of_all(config);
    if (refusal == nullptr) return;
    config.sigma.reset();
  }
  refusal = plans.refusal_of_all(config);
  if (refusal != nullptr) std::rethrow_exception(refusal);
}

}  // namespace cudp
