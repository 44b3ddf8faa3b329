#include "runtime/run/reservation.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "privacy/accountant.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/verify/stated_numbers.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/results/run_spending.hpp"
#include "runtime/run/stored_run.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using privacy::RunSpending;

/// Safety factor on the estimate that is charged for a training before its noisy number of examples
/// is known. The estimate is the Renyi divergence of one Gaussian mechanism without sampling that
/// has the training's epsilon and delta. The Renyi divergence of a training with sampled batches is
/// at most this factor times the estimate, except for small sampling rates in few steps.
constexpr double kEstimate = 1.25;
/// Fraction of a budget file's failure probability (part of delta) that the bound of one training
/// may use.
constexpr double kFailureOfOne = 0.125;

const char* const kFile = "budgets";

using Parts = std::vector<RunSpending>;

/// Returns a bound on the privacy cost of a training that is computed with privacy loss
/// distributions: a list of the `earlier` releases, on which the choice of the `planned` ones
/// depended, and one (epsilon, delta)-DP bound for all planned ones. If rows are rarely sampled,
/// this bound may be far smaller than the usual one, which is computed from Renyi divergences.
/// Returns an empty list if the accountant has no such bound. failure: probability that the bounds
/// of the training fail.
Parts by_losses(const std::vector<privacy::Release>& earlier,
                const std::vector<privacy::Release>& planned, double failure, std::uint64_t group,
                double delta) {
  try {
    const privacy::PrivacyBound bound =
        privacy::Accountant({.releases = planned, .group = group}).epsilon(delta);
    return {{.run = privacy::ChosenRun{earlier}, .failure = failure},
            {.run = privacy::StatedRun{bound.epsilon, delta}}};
  } catch (const std::domain_error&) {
    return {};
  }
}

[[noreturn]] void refuse(const BudgetFile& file, const std::string& note, double fraction,
                         double delta, bool started) {
  const privacy::RunFilter& filter = file.filter();
  throw BudgetError(fmt::format(
      "{}: {} needs {:.3g} % of the budget (epsilon {:.6g}, delta {:.3g}), and {:.3g} % is left: "
      "about epsilon {:.3g} at delta {:.3g} for one more training, or a delta of {:.3g}{}",
      file.path().string(), note, 100.0 * fraction, filter.budget().epsilon, filter.budget().delta,
      100.0 * filter.remaining(), filter.epsilon_left(delta), delta, filter.delta_left(),
      started ? "; its noisy number of examples was released and is charged" : ""));
}

}  // namespace

std::string protected_unit(const DataSplit& data) {
  const std::string column = unit_name(data);
  if (column.empty()) return "each row";
  return "up to " + std::to_string(data.unit_rows) + " rows with one text in " + column;
}

Reservation::Reservation(BudgetsInUse budgets, std::string note)
    : files_(std::move(budgets.files)), note_(std::move(note)) {
  for (std::string& file : files_) file = fs::weakly_canonical(file).string();
  // All processes lock several files in the same order, so that they cannot deadlock.
  std::ranges::sort(files_);
  files_.erase(std::unique(files_.begin(), files_.end()), files_.end());
}

Reservation::CostBounds Reservation::cost_bounds(const Training& t) const {
  const DataSplit& data = t.experiment().data;
  return {.bounds = {}, .unit = protected_unit(data), .unit_rows = data.unit_rows};
}

void Reservation::charge_count(const Training& t) {
  const std::vector<privacy::Release> count = t.ledger().releases();
  if (files_.empty() || count.empty()) return;
  const TrainConfig& c = t.experiment().config;
  if (!c.epsilon || !c.delta)
    throw BudgetError(note_ + ": expected epsilon and delta within a budget, found none");
  CostBounds costs = cost_bounds(t);
  Parts parts;
  if (c.holdout) {
    parts = {{.run = privacy::StatedRun{std::fmax(*c.epsilon, c.holdout_epsilon.value_or(0.0)),
                                        std::fmax(*c.delta, c.holdout_delta.value_or(0.0))}}};
  } else {
    const auto& split = t.ledger().split();
    const double mu = privacy::gaussian_mu(split ? split->training_epsilon : *c.epsilon,
                                           split ? split->training_delta : *c.delta);
    parts = {{.run = privacy::ChosenRun{count}},
             {.run = privacy::ZcdpFilteredRun{0.5 * mu * mu}, .failure = kFailureShare * *c.delta}};
    costs.factor = kEstimate;
  }
  costs.bounds = {[&] { return parts; }};
  charge(costs);
}

void Reservation::charge_plan(const Training& t) {
  if (files_.empty()) return;
  if (!std::isfinite(t.method().epsilon()))
    throw BudgetError(note_ + ": expected a method with privacy within a budget, found " +
                      t.experiment().config.method);
  const std::string text = to_text(t.plan_certificate());
  const verify::StatedNumbers stated = verify::read_stated_numbers(text);
  const RunSpending spending = spending_of(nlohmann::json::parse(text), stated, note_);
  CostBounds costs = cost_bounds(t);
  std::vector<privacy::Release> count, planned;
  if (stated.split) {
    count = {{privacy::Gaussian{stated.split->sigma}, 1}};
    planned = stated.plan_releases();
  } else if (const auto* fixed = std::get_if<privacy::PlannedRun>(&spending.run)) {
    planned = fixed->releases;
  }
  costs.bounds = {[&] { return Parts{spending}; }};
  const bool all_known = !std::holds_alternative<privacy::StatedRun>(spending.run);
  if (all_known && !planned.empty())
    costs.bounds.emplace_back([&] {
      return by_losses(count, planned, spending.failure, costs.unit_rows,
                       kFailureOfOne * 0.5 * stated.delta);
    });
  costs.bounds.emplace_back([&] {
    return Parts{{.run = privacy::StatedRun{stated.epsilon, stated.delta}}};
  });
  charge(costs);
}

void Reservation::charge_again(const Training& t) {
  if (files_.empty()) return;
  charged_.clear();
  CostBounds costs = cost_bounds(t);
  costs.bounds = {[&] {
    return Parts{{.run = privacy::StatedRun{t.method().epsilon(), t.method().delta()}}};
  }};
  charge(costs);
}

void Reservation::charge_stated(const std::string& unit, double epsilon, double delta) {
  if (files_.empty()) return;
  charge({.bounds = {[&] {
            return Parts{{.run = privacy::StatedRun{epsilon, delta}}};
          }},
          .unit = unit});
}

void Reservation::charge(const CostBounds& costs) {
  std::vector<BudgetFile> files;
  files.reserve(files_.size());
  for (const std::string& path : files_) files.emplace_back(path);
  std::vector<std::size_t> numbers;
  // Nothing is written until all budgets have admitted the training.
  for (std::size_t i = 0; i < files.size(); ++i) {
    privacy::RunFilter& filter = files[i].filter();
    double fraction = INFINITY;
    std::optional<std::size_t> number;
    try {
      filter.protect(costs.unit);
      for (const auto& bound : costs.bounds) {
        const Parts parts = bound();
        if (parts.empty()) continue;
        privacy::RunCost cost = filter.cost(parts, costs.unit_rows);
        cost.divergence *= costs.factor;
        fraction = std::fmin(fraction, filter.fraction(cost));
        if (charged_.empty())
          number = filter.charge(cost, note_);
        else if (filter.settle(charged_[i], cost))
          number = charged_[i];
        if (number) break;
      }
    } catch (const std::invalid_argument& e) {
      throw InputError(files[i].path().string() + ": " + e.what());
    } catch (const std::domain_error& e) {
      throw BudgetError(files[i].path().string() + ": " + e.what());
    }
    if (!number) refuse(files[i], note_, fraction, filter.budget().delta, !charged_.empty());
    numbers.push_back(*number);
  }
  for (const BudgetFile& file : files) file.save();
  charged_ = std::move(numbers);
}

void Reservation::write(const RunFolder& folder) const {
  if (files_.empty()) return;
  folder.write(folder.owner(kFile), nlohmann::json(files_).dump() + "\n", 0600);
}

BudgetsInUse Reservation::read(const RunFolder& folder) {
  std::error_code error;
  if (!fs::exists(folder.owner(kFile), error)) return {};
  const auto json = nlohmann::json::parse(read_file(folder.owner(kFile)), nullptr, false);
  if (!json.is_array())
    throw BudgetError(folder.owner(kFile).string() +
                      ": expected a list of budgets, found something else");
  BudgetsInUse budgets;
  for (const auto& file : json) budgets.files.push_back(file.get<std::string>());
  return budgets;
}

}  // namespace cudp
