#include "runtime/training/before_count.hpp"

#include <cmath>
#include <exception>
#include <stdexcept>
#include <string>

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

class Plans {
 public:
  Plans(const Experiment& e, double noise, const privacy::Ledger& counted)
      : e_(e), noise_(noise), counted_(counted) {}

  /// What refuses a plan for so many batches of examples; null where nothing does.
  std::exception_ptr refusal(const TrainConfig& config, double batches) const {
    const double examples = batches * std::fmax(1.0, static_cast<double>(config.batch));
    const TrainingSize size{examples, noise_, e_.data.unit_rows};
    try {
      TrainConfig chosen = config;
      choose_for_table(chosen, size, e_.data.train, e_.network);
      method_entry(config.method)
          .make(method_context(chosen, e_.network, size, e_.backend.arithmetic(e_.network),
                               counted_));
      return nullptr;
    } catch (const Error&) {
      return std::current_exception();
    } catch (const std::logic_error& reason) {
      return std::make_exception_ptr(BudgetError(reason.what()));
    }
  }

  /// What refuses a plan for every number of batches that is tried, the most of them in the end.
  std::exception_ptr refusal_of_all(const TrainConfig& config) const {
    std::exception_ptr reason;
    for (const double batches : {32.0, 2.0, 512.0, kMostBatches}) {
      reason = refusal(config, batches);
      if (reason == nullptr) break;
    }
    return reason;
  }

 private:
  const Experiment& e_;
  double noise_;
  const privacy::Ledger& counted_;
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

/// The noise is given, and decides for which numbers of examples the budget is kept.
void check_sigma(const Experiment& e, const Plans& plans) {
  const TrainConfig& c = e.config;
  const std::exception_ptr of_all = plans.refusal_of_all(c);
  if (of_all != nullptr && budget_reason(of_all).empty()) std::rethrow_exception(of_all);
  double least = 0.0;  // from so many batches on nothing was refused
  std::string reason;
  for (double batches = kMostBatches; batches >= 1.0; batches *= 0.5) {
    reason = budget_reason(plans.refusal(c, batches));
    if (!reason.empty()) break;
    least = batches;
  }
  if (reason.empty()) return;
  const auto examples = [&](double batches) {
    return fmt::format("{:.0f} examples", batches * static_cast<double>(c.batch));
  };
  throw BudgetError(fmt::format(
      "--sigma: expected none beside --epsilon, or one that keeps epsilon {:.6g} whatever the "
      "number of training examples is, which is private; found {:.6g}, which does not keep it {} "
      "({}). "
      "Leave --sigma out: it follows from --epsilon and the noisy number{}",
      *c.epsilon, *c.sigma,
      least == 0.0 ? "even for " + examples(kMostBatches) : "below about " + examples(least),
      reason, c.holdout ? "" : "; or pass --size-is-public if the number is public"));
}

}  // namespace

void check_before_count(const Experiment& e, double noise, const privacy::Ledger& counted) {
  const Plans plans(e, noise, counted);
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
