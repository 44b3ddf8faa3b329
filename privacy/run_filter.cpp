#include "privacy/run_filter.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "privacy/filter.hpp"
#include "privacy/math/constants.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "privacy/text/checked_lines.hpp"
#include "privacy/text/number.hpp"
#include "privacy/text/words.hpp"

// Format of the text of a RunFilter (to_text()):
//
//   cudp-budget 1 #<checksum>
//   budget ORDER EPSILON DELTA FAILURE #<checksum>
//   unit TEXT #<checksum>
//   run DIVERGENCE FAILURE TEXT #<checksum>
//   end #<checksum>
//
// The line `unit` is absent before the first training. DIVERGENCE and FAILURE are integers:
// fractions of the budget, in units of 2^-62. In a TEXT, bytes other than printable ASCII are
// written as %XX.

namespace cudp::privacy {
namespace {

/// First line of the text, which names its format and version.
constexpr std::string_view kTitle = "cudp-budget 1";

std::string escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte <= '~' && c != '%' && c != '#') {
      out += c;
      continue;
    }
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string unescaped(std::string_view text) {
  const auto digit = [&](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    expected("% and two hexadecimal digits", text);
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) expected("% and two hexadecimal digits", text);
    out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return out;
}

}  // namespace

Budget budget_for_runs(double epsilon, double delta) {
  Budget budget{.order = 2.0, .epsilon = epsilon, .delta = delta, .failure = 0.5 * delta};
  check(budget);
  const double of_filter = budget.delta - budget.failure;
  const double rho = zcdp_for(epsilon, of_filter);
  double least = std::numeric_limits<double>::infinity();
  // Orders from 1.001 to 10^6 in equal ratios of order - 1. The curve is flat at its best order.
  for (int i = -300; i <= 600; ++i) {
    const double order = 1.0 + std::pow(10.0, 0.01 * i);
    const double found = epsilon_at(order, order * rho, of_filter);
    if (!(found < least)) continue;
    least = found;
    budget.order = order;
  }
  return budget;
}

RunFilter::RunFilter(const Budget& budget) : budget_(budget) {
  if (budget.order == 0.0)
    throw std::invalid_argument("order: expected one above 1 for several trainings, found 0");
  limit_ = Filter(budget).limit();
}

void RunFilter::protect(const std::string& unit) {
  if (!unit_.empty() && unit != unit_)
    throw std::invalid_argument("unit of privacy: expected that of the budget, " + unit_ +
                                ", found " + unit);
  unit_ = unit;
}

RunCost RunFilter::cost(const std::vector<RunSpending>& parts, std::uint64_t group) const {
  RunCost sum;
  for (const RunSpending& part : parts) {
    const RunCost one = cost_at(part, budget_.order, group);
    sum.divergence = (sum.divergence + one.divergence) * outward;
    sum.failure = (sum.failure + one.failure) * outward;
  }
  return sum;
}

RunFilter::Run RunFilter::priced(const RunCost& cost) const {
  if (std::isnan(cost.divergence) || cost.divergence < 0.0 || !(cost.failure >= 0.0))
    throw std::invalid_argument("cost: expected numbers >= 0, found " + number(cost.divergence) +
                                " and " + number(cost.failure));
  return {.divergence = budget_units(cost.divergence, limit_),
          .failure = budget_units(cost.failure, budget_.failure),
          .note = {}};
}

bool RunFilter::fits(const Run& run, std::uint64_t divergence, std::uint64_t failure) const {
  return run.divergence <= kBudgetUnits - divergence && run.failure <= kBudgetUnits - failure;
}

void RunFilter::append(Run run) {
  divergence_ += run.divergence;
  failure_ += run.failure;
  runs_.push_back(std::move(run));
}

std::optional<std::size_t> RunFilter::charge(const RunCost& cost, std::string note) {
  Run run = priced(cost);
  if (!fits(run, divergence_, failure_)) return std::nullopt;
  run.note = std::move(note);
  append(std::move(run));
  return runs_.size() - 1;
}

bool RunFilter::settle(std::size_t at, const RunCost& cost) {
  Run& run = runs_.at(at);
  const Run now = priced(cost);
  const std::uint64_t divergence = divergence_ - run.divergence;
  const std::uint64_t failure = failure_ - run.failure;
  if (!fits(now, divergence, failure)) return false;
  divergence_ = divergence + now.divergence;
  failure_ = failure + now.failure;
  run.divergence = now.divergence;
  run.failure = now.failure;
  return true;
}

double RunFilter::fraction(const RunCost& cost) const {
  return std::fmax(cost.divergence / limit_,
                   cost.failure == 0.0 ? 0.0 : cost.failure / budget_.failure);
}

double RunFilter::remaining() const {
  return static_cast<double>(kBudgetUnits - divergence_) / static_cast<double>(kBudgetUnits);
}

double RunFilter::delta_left() const {
  return budget_.failure * static_cast<double>(kBudgetUnits - failure_) /
         static_cast<double>(kBudgetUnits);
}

double RunFilter::epsilon_left(double delta, double factor) const {
  check_delta(delta);
  // The divergence of a Gaussian mechanism is order mu^2 / 2.
  const double mu = std::sqrt(2.0 * limit_ * remaining() / (factor * budget_.order)) * (1.0 - 1e-9);
  return mu > 0.0 ? gaussian_epsilon(mu, delta) : 0.0;
}

std::string RunFilter::to_text() const {
  CheckedLines lines;
  lines.add(kTitle);
  lines.add("budget " + hex(budget_.order) + " " + hex(budget_.epsilon) + " " + hex(budget_.delta) +
            " " + hex(budget_.failure));
  if (!unit_.empty()) lines.add("unit " + escaped(unit_));
  for (const Run& run : runs_)
    lines.add("run " + std::to_string(run.divergence) + " " + std::to_string(run.failure) + " " +
              escaped(run.note));
  lines.add("end");
  return lines.text();
}

RunFilter RunFilter::from_text(std::string_view text, std::string_view name) {
  std::optional<RunFilter> filter;
  LineReader lines(text, name);
  lines.read([&] {
    std::string_view line = lines.take();
    if (line != kTitle) expected(std::string(kTitle), line);
    line = lines.take();
    if (take_word(line) != "budget") expected("the budget", line);
    Budget budget;
    for (double* const field : {&budget.order, &budget.epsilon, &budget.delta, &budget.failure})
      *field = take_number(line);
    if (!line.empty()) expected("the end of the line", line);
    filter.emplace(budget);
    for (line = lines.take(); line != "end"; line = lines.take()) {
      const std::string_view whole = line, word = take_word(line);
      if (word == "unit" && filter->unit_.empty() && filter->runs_.empty()) {
        filter->unit_ = unescaped(line);
        continue;
      }
      if (word != "run") expected("run or end", whole);
      Run run;
      run.divergence = take_count(line);
      run.failure = take_count(line);
      run.note = unescaped(line);
      if (!filter->fits(run, filter->divergence_, filter->failure_))
        expected("runs within the budget", whole);
      filter->append(std::move(run));
    }
  });
  return *std::move(filter);
}

}  // namespace cudp::privacy
