#include "privacy/verify/rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "privacy/filter.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "privacy/text/json_text.hpp"
#include "privacy/text/number.hpp"
#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/statements.hpp"

namespace cudp::verify {
namespace {

using privacy::number;

/// Relative difference between two epsilons that is attributed to rounding errors of the
/// accountant.
constexpr double kNearly = 1e-9;

/// Returns the releases that a run had certainly made after `step` steps, from the certificate's
/// list, which is in order. Leaves out those of later steps and, for method DPIS, the noisy sums of
/// norms of an epoch of which no step was made yet.
std::vector<privacy::Release> releases_until(const StatedNumbers& c, std::uint64_t step) {
  std::vector<privacy::Release> done = c.plan_releases();
  // Number of the releases by steps that follow `step`. Under random allocation one release covers
  // all steps of an epoch.
  const std::uint64_t each = c.steps_of_release();
  const std::uint64_t all = (c.steps + each - 1) / each;
  std::uint64_t ahead = all - std::min((step + each - 1) / each, all);
  if (ahead == 0) return done;
  while (!done.empty()) {
    privacy::Release& last = done.back();
    const bool is_step = !is_epoch_total(c, last.mechanism);
    if (is_step && ahead == 0) break;
    const std::uint64_t undone = is_step ? std::min(ahead, last.count) : last.count;
    if (is_step) ahead -= undone;
    last.count -= undone;
    if (last.count > 0) break;
    done.pop_back();
  }
  return done;
}

bool is_of_training(std::string_view key) {
  return key == "epoch" || key == "step" || key == "epsilon" || key == "training_epsilon" ||
         key == "learning_rate";
}
/// Returns whether this field of metrics.jsonl is computed from test rows, e.g. test_accuracy.
bool is_measured(std::string_view key) {
  static constexpr std::string_view kAll[] = {"test_accuracy",
                                              "majority_baseline",
                                              "test_loss",
                                              "log_loss_of_class_shares",
                                              "balanced_accuracy",
                                              "auc",
                                              "calibration_error",
                                              "rmse",
                                              "mae",
                                              "r2",
                                              "mean_baseline_rmse",
                                              "average_precision",
                                              "brier_score",
                                              "log_loss"};
  return std::ranges::find(kAll, key) != std::end(kAll);
}

void add(std::vector<double>& costs, double cost, std::uint64_t count) {
  costs.insert(costs.end(), count, cost);
}
/// Returns the sum of the first n numbers of `costs`, or of all if there are fewer.
double sum_of(const std::vector<double>& costs, std::uint64_t n) {
  const auto end = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(n, costs.size()));
  return std::accumulate(costs.begin(), costs.begin() + end, 0.0);
}

/// Implementation of check_rows(): checks the lines of metrics.jsonl (`rows`) and collects the
/// differences.
class Rows {
 public:
  Rows(const std::vector<Row>& rows, const StatedNumbers& certificate, Bounds& bounds)
      : rows_(rows), c_(certificate), bounds_(bounds) {}

  /// Checks the total epsilon of each line, if rows were held out or the training was selected
  /// among others. With held-out rows it is the larger one of the epsilons of the training and of
  /// the released test metrics; for a selection it is the epsilon of the whole selection. Other
  /// runs must have no such field.
  void check_parts() {
    const bool has_parts = c_.holdout || c_.tuning;
    for (const Row& row : rows_) {
      const std::string where = "row at step " + std::to_string(row.step);
      const double expected =
          c_.tuning ? c_.epsilon : std::fmax(row.epsilon, has_parts ? c_.holdout->epsilon : 0.0);
      if (row.total_epsilon.has_value() != has_parts)
        wrong_.push_back(where + ": expected " + (has_parts ? "a" : "no") +
                         " training_epsilon, found " + (has_parts ? "none" : "one"));
      else if (has_parts && *row.total_epsilon != expected)
        wrong_.push_back(
            "epsilon of the " + where + ": expected " +
            (c_.tuning ? "that of the whole tuning, " : "the larger one of both parts, ") +
            number(expected) + ", found " + number(*row.total_epsilon));
    }
  }

  /// Checks that the step number increases from line to line, and that it is `made`, the number of
  /// steps of the run, in the last line. Requires a run in which no step was charged twice.
  void check_steps(std::uint64_t made) {
    for (std::size_t i = 1; i < rows_.size(); ++i)
      if (rows_[i].step <= rows_[i - 1].step)
        wrong_.push_back("row " + std::to_string(i + 1) + ": expected a step above " +
                         std::to_string(rows_[i - 1].step) + ", found " +
                         std::to_string(rows_[i].step));
    if (rows_.back().step != made)
      wrong_.push_back("last row's step: expected " + std::to_string(made) + ", found " +
                       std::to_string(rows_.back().step));
  }

  /// Checks that each line is at the end of an epoch, which has `epoch` steps, or at the last step.
  void check_epochs(std::uint64_t epoch) {
    for (const Row& row : rows_) {
      const double epochs = static_cast<double>(row.step) / static_cast<double>(epoch);
      if ((row.step % epoch != 0 && row.step != c_.steps) ||
          std::fabs(row.epoch - epochs) > 1e-9 * epochs)
        wrong_.push_back("row at step " + std::to_string(row.step) +
                         ": expected the end of an epoch of " + std::to_string(epoch) +
                         " steps, or the last step, found epoch " + number(row.epoch));
    }
  }

  /// Checks that lines have metrics of test rows if and only if the certificate states that test
  /// rows are public.
  void check_measured(const std::string& test_set) {
    const bool is_public = test_set.starts_with("public");
    for (const Row& row : rows_)
      if (row.is_measured != is_public)
        wrong_.push_back("row at step " + std::to_string(row.step) + ": expected " +
                         (is_public ? "" : "no ") + "figures of test rows, which are '" + test_set +
                         "', found " + (row.is_measured ? "some" : "none"));
  }

  void check_between(const Row& row, double min_epsilon, double max_epsilon) {
    if (row.epsilon >= min_epsilon * (1.0 - kNearly) &&
        row.epsilon <= max_epsilon * (1.0 + kNearly))
      return;
    const bool low = !(row.epsilon >= min_epsilon * (1.0 - kNearly));
    wrong_.push_back("epsilon of the row at step " + std::to_string(row.step) + ", at " +
                     (low ? "least" : "most") + ": expected " +
                     number(low ? min_epsilon : max_epsilon) + ", found " + number(row.epsilon));
  }

  /// Checks each line's epsilon against the accountant, for methods with noisy sums over batches.
  /// Lines before the last one are checked with a faster, slightly larger bound, for which privacy
  /// losses are rounded to a grid that is ten times as coarse.
  void check_engine(privacy::AccountantOptions options) {
    const bool repeated = c_.lost_a_key();
    for (const Row& row : rows_) {
      options.coarseness = &row == &rows_.back() ? 1.0 : 10.0;
      const auto epsilon_of = [&](std::vector<privacy::Release> releases) {
        return bounds_
                   .epsilon({.releases = std::move(releases), .group = c_.max_rows}, options,
                            c_.plan_delta() - c_.failure)
                   .epsilon +
               (c_.split ? c_.split->count_epsilon : 0.0);
      };
      // If the random key was lost, repeated steps were charged again, and count from then on. A
      // line's epsilon may then be larger than `epsilon`.
      std::vector<privacy::Release> done = releases_until(c_, row.step);
      // When the line was written, the noisy sums of norms of the next DPIS epoch may have been
      // released already, even if the run made no step of that epoch. So the sums at the end of the
      // list are removed. Below, epsilon with one or two of them is accepted, too.
      const bool has_totals = c_.norm_total_noise > 0.0;
      while (has_totals && !done.empty() && is_epoch_total(c_, done.back().mechanism))
        done.pop_back();
      double epsilon = epsilon_of(done);
      // Each line states the smallest bound. That is the one by Renyi divergences at the end of the
      // run (options.kind), but perhaps another one at this line.
      if (options.kind == privacy::AccountantKind::rdp && !c_.order_fixed &&
          !(std::fabs(row.epsilon - epsilon) <= kNearly * epsilon)) {
        options.kind = privacy::AccountantKind::best;
        const double smallest = epsilon_of(done);
        if (std::fabs(row.epsilon - smallest) <= kNearly * smallest) epsilon = smallest;
        options.kind = privacy::AccountantKind::rdp;
      }
      double most = repeated ? std::numeric_limits<double>::infinity() : epsilon;
      for (std::uint64_t totals = 1; has_totals && totals <= 2; ++totals) {
        std::vector<privacy::Release> begun = done;
        begun.push_back({privacy::Gaussian{c_.norm_total_noise}, totals});
        const double with_totals = epsilon_of(std::move(begun));
        if (std::fabs(row.epsilon - with_totals) <= kNearly * with_totals) most = row.epsilon;
      }
      check_between(row, std::fmin(epsilon, most), most);
      if (bounds_.on_rows)
        bounds_.on_rows(static_cast<double>(&row - rows_.data() + 1) /
                        static_cast<double>(rows_.size()));
    }
    // After a lost key the whole budget counts as spent, so the last line must state it. A filter
    // with a fixed order may admit no step after the loss; the last line is then from before the
    // loss, and may state less.
    const bool budget = c_.keys_lost.value_or(0) > 0 && !c_.order_fixed;
    check_between(rows_.back(), budget ? c_.training_epsilon : 0.0, c_.training_epsilon);
  }

  /// Checks that the epsilon of each line is possible for DP-AGD, whose filter adds costs in rho
  /// (zCDP). How many releases an iteration makes depends on released values, but it makes at least
  /// one gradient and one selection. So after n iterations the rho spent is at least that of the n
  /// cheapest gradients and selections, and at most the total less that of the cheapest ones for
  /// the remaining iterations. The first gradient of an iteration never costs less than that of the
  /// first iteration.
  void check_filter() {
    const privacy::Filter filter(
        privacy::zcdp_budget(c_.training_epsilon, c_.training_delta, 0.0, c_.max_rows));
    double before = 0.0, all = 0.0;
    // A line counts epsilon^2 / 2 for a choice by Laplace noise; the filter counts slightly less.
    std::vector<double> gradients, selections, larger_selections;
    const auto k = static_cast<double>(c_.max_rows);
    for (const privacy::Release& r : c_.releases) {
      const double cost = filter.cost(r.mechanism);
      const double sigma = sigma_of(r.mechanism);
      const auto* const pure = std::get_if<privacy::ApproximateDp>(&r.mechanism);
      const double larger =
          pure != nullptr ? std::fmax(cost, 0.5 * k * k * pure->epsilon * pure->epsilon) : cost;
      all += larger * static_cast<double>(r.count);
      if (sigma == 0.0) add(larger_selections, larger, r.count);
      if (sigma > 0.0 && (sigma == c_.size_noise || sigma == c_.feature_noise))
        before += cost * static_cast<double>(r.count);
      else
        add(sigma > 0.0 ? gradients : selections, cost, r.count);
    }
    if (!gradients.empty())
      std::erase_if(gradients, [limit = gradients.front() * (1.0 - kNearly)](double cost) {
        // Removes gradients that were measured again, with a smaller share of the budget.
        return cost < limit;
      });
    std::ranges::sort(gradients);
    std::ranges::sort(selections);
    std::ranges::sort(larger_selections);
    // Returns the epsilon that a line states if `rho` is spent. For the upper bound, delta is a
    // little smaller, as in the run's filter, which makes epsilon a little larger.
    const auto epsilon_of = [&](double rho, double delta) {
      return std::fmin(c_.training_epsilon, privacy::epsilon_from_zcdp(rho, delta));
    };
    for (const Row& row : rows_) {
      const std::uint64_t left = c_.steps - std::min(row.step, c_.steps);
      const double least = before + sum_of(gradients, row.step) + sum_of(selections, row.step);
      const double most = all - sum_of(gradients, left) - sum_of(larger_selections, left);
      check_between(row, epsilon_of(least, c_.training_delta),
                    epsilon_of(most, c_.training_delta * (1.0 - 2e-9)) * (1.0 + kNearly));
    }
  }

  /// Checks the lines of a method that has one step only: there must be one line.
  void check_one_row() {
    if (rows_.size() != 1)
      wrong_.push_back("expected one row, found " + std::to_string(rows_.size()));
    for (const Row& row : rows_) {
      if (row.step != 1 || row.epoch != 1.0)
        wrong_.push_back("row: expected step 1 and epoch 1, found step " +
                         std::to_string(row.step) + " and epoch " + number(row.epoch));
      check_between(row, c_.training_epsilon, c_.training_epsilon);
    }
  }

  std::vector<std::string> take() { return std::move(wrong_); }

 private:
  const std::vector<Row>& rows_;
  const StatedNumbers& c_;
  Bounds& bounds_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<Row> read_rows(std::string_view text) {
  std::vector<Row> rows;
  try {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const nlohmann::json line = privacy::parse_json(text.substr(0, end));
      const auto claimed = [&](const char* name) {
        const auto& value = line.at(name);
        return value.is_null() ? std::nan("") : value.get<double>();
      };
      if (!line.at("step").is_number_unsigned())
        throw std::invalid_argument("metrics: step: expected a whole number, found " +
                                    line.at("step").dump());
      Row row{.step = line.at("step").get<std::uint64_t>(), .epsilon = claimed("epsilon")};
      row.epoch = claimed("epoch");
      if (line.contains("training_epsilon")) {
        row.total_epsilon = row.epsilon;
        row.epsilon = claimed("training_epsilon");
      }
      static_cast<void>(line.at("learning_rate"));
      for (const auto& [key, value] : line.items()) {
        if (!value.is_number() && !value.is_null())
          throw std::invalid_argument("metrics: " + key + ": expected a number, found " +
                                      value.dump());
        if (is_measured(key))
          row.is_measured = true;
        else if (!is_of_training(key))
          throw std::invalid_argument("metrics: expected no " + key + ", found one");
      }
      rows.push_back(row);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  } catch (const nlohmann::json::exception& e) {
    throw std::invalid_argument(std::string("metrics: ") + e.what());
  }
  return rows;
}

std::vector<std::string> check_rows(const std::vector<Row>& rows, const StatedNumbers& certificate,
                                    const Settings& settings, bool engine,
                                    const privacy::AccountantOptions& options, Bounds& bounds) {
  if (rows.empty()) return {"expected rows, found none"};
  Rows holder(rows, certificate, bounds);
  holder.check_parts();
  holder.check_measured(certificate.test_set);
  if (engine) {
    if (certificate.repeated == 0) {
      holder.check_steps(certificate.steps);
      holder.check_epochs(steps_per_epoch(certificate, settings));
    }
    holder.check_engine(options);
  } else if (certificate.method == "dp-agd") {
    holder.check_steps(certificate.steps);
    holder.check_epochs(1);
    holder.check_filter();
  } else {
    holder.check_one_row();
  }
  return holder.take();
}

}  // namespace cudp::verify
