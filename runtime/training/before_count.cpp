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

/// So much noise costs next to nothing, so that no noise has to be searched for.
constexpr double kPlentyOfNoise = 1024.0;
/// The largest number of examples that is tried, over the batch.
constexpr double kMostBatches = 4096.0;
/// The counts of examples that are looked at end where there are 2^32 of them, or where a training
/// has so many steps.
constexpr double kMostExamples = 0x1p32;
constexpr double kMostSteps = 0x1p22;
/// The plans that are made at most to find out which counts a noise multiplier is enough for.
constexpr int kMostPlans = 200;

/// Numbers of examples, both ends included.
struct Counts {
  double low = 1.0;
  double high = 1.0;
};

/// Some counts for which a plan is refused: as many as `counts` has, or so few more that nobody
/// minds, and none above.
struct RefusedCounts {
  Counts counts;
  std::exception_ptr reason;
};

/// The text of a refusal by the budget; empty for others, and where there is none.
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

class Plans {
 public:
  Plans(const Experiment& e, double noise, const privacy::Ledger& counted)
      : e_(e), noise_(noise), counted_(counted) {}

  /// What refuses the plan for a count; null where nothing does.
  std::exception_ptr refusal(const TrainConfig& config, double count) const {
    return refusal_of([&] { make(chosen(config, count), count, {}, 1.0); });
  }

  /// What refuses a plan for every count that is tried, the largest of them in the end.
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

  /// The counts that a noise multiplier must be enough for. A batch above the count is refused by
  /// the count.
  Counts all_counts(const TrainConfig& config) const {
    const bool open = chosen(config, kMostExamples).batch != config.batch;
    return {open ? kTableBatches : batch_of(config), max_count(config)};
  }

  /// The largest of these counts for which the plan is refused, with those next to it. Empty: it is
  /// refused for none.
  ///
  /// Counts with the same batch, epochs and steps of an epoch differ in the sampling rate alone,
  /// which falls as the count grows, and with it the cost: for them the smallest one decides. For
  /// more counts at a time a plan is made that costs no less than that of any of them: of the
  /// largest rate, and of the most steps. Where that one is refused each half is looked at.
  std::optional<RefusedCounts> largest_refused(const TrainConfig& config, const Counts& counts) {
    const Worst worst = worst_of(config, counts);
    const std::exception_ptr reason = refusal(worst);
    if (reason == nullptr) return std::nullopt;
    const bool narrow = counts.high - counts.low <= counts.low / 256.0;
    if ((worst.is_exact && narrow) || plans_ >= kMostPlans) {
      // A batch that is too large for the count is no fault of the noise.
      if (budget_reason(reason).empty()) return std::nullopt;
      return RefusedCounts{counts, reason};
    }
    const double middle =
        std::clamp(std::floor(std::sqrt(counts.low * counts.high)), counts.low, counts.high - 1.0);
    auto refused = largest_refused(config, {middle + 1.0, counts.high});
    return refused ? refused : largest_refused(config, {counts.low, middle});
  }

 private:
  /// A plan that costs no less than those of some counts.
  struct Worst {
    TrainConfig config;
    double count = 1.0;
    std::vector<std::uint64_t> epoch_steps;  ///< the worst one is among these
    bool is_exact = false;                   ///< it is the plan of the smallest count
  };

  static double batch_of(const TrainConfig& config) {
    return std::fmax(1.0, static_cast<double>(config.batch));
  }

  TrainingSize size_of(double count) const { return {count, noise_, e_.data.unit_rows}; }

  /// The settings once the count is known.
  TrainConfig chosen(TrainConfig config, double count) const {
    choose_for_table(config, size_of(count), e_.data.train, e_.network);
    return config;
  }

  /// The largest count up to kMostExamples whose training has no more than kMostSteps. Noise that
  /// follows the step sizes of a schedule grows with the number of steps, beyond what is allowed:
  /// of such a method it is kMostBatches of the batch.
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
      // Batches are count / kTableBatches, rounded down: the rate is at most 1 / kTableBatches, and
      // the rule's epochs grow with it. An epoch has the most steps before a batch grows.
      const double batch = std::floor(counts.low / kTableBatches);
      high_steps = static_cast<std::uint64_t>(std::ceil(kTableBatches * (batch + 1.0) / batch));
      first = chosen(config, kTableBatches * std::ceil(counts.low / kTableBatches));
      worst.count = kTableBatches * static_cast<double>(first.batch);
    }
    if (worst.is_exact) return worst;
    worst.epoch_steps = {high_steps};
    if (first.steps) {
      // Of so many steps it depends on the method whether longer epochs cost more.
      if (low_steps != high_steps) worst.epoch_steps.push_back(low_steps);
    } else {
      first.steps = *first.epochs * static_cast<std::int64_t>(high_steps);
      first.epochs.reset();
    }
    return worst;
  }

  std::exception_ptr refusal(const Worst& worst) {
    if (worst.is_exact) return refusal_of([&] { make_worst(worst, {}); });
    for (const std::uint64_t epoch_steps : worst.epoch_steps)
      if (auto reason = refusal_of([&] { make_worst(worst, epoch_steps); })) return reason;
    return nullptr;
  }

  /// Renyi divergences are a quicker bound, and looser, but for a part in a hundred at most.
  void make_worst(const Worst& worst, std::optional<std::uint64_t> epoch_steps) {
    ++plans_;
    TrainConfig quick = worst.config;
    if (quick.accountant == privacy::AccountantKind::pld ||
        quick.accountant == privacy::AccountantKind::best) {
      quick.accountant = privacy::AccountantKind::rdp;
      if (refusal_of([&] { make(quick, worst.count, epoch_steps, 0.99); }) == nullptr) return;
    }
    make(worst.config, worst.count, epoch_steps, 1.0);
  }

  /// Makes the method with this share of the budget's epsilon.
  void make(const TrainConfig& config, double count, std::optional<std::uint64_t> epoch_steps,
            double share) const {
    MethodContext context = method_context(config, e_.network, size_of(count),
                                           e_.backend.arithmetic(e_.network), counted_);
    context.epoch_steps = epoch_steps;
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

/// The noise is given, and decides for which numbers of examples the budget is kept.
void check_sigma(const Experiment& e, Plans& plans) {
  const TrainConfig& c = e.config;
  const std::exception_ptr of_all = plans.refusal_of_all(c);
  if (of_all != nullptr && budget_reason(of_all).empty()) std::rethrow_exception(of_all);
  const Counts all = plans.all_counts(c);
  const auto refused = plans.largest_refused(c, all);
  if (!refused) return;
  const std::string reason = budget_reason(refused->reason);
  const bool none = refused->counts.high == all.high;
  throw BudgetError(fmt::format(
      "--sigma: expected none beside --epsilon, or one that keeps epsilon {:.6g} whatever the "
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
