#include "privacy/several_runs.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>
#include <system_error>

#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "runtime/base/error.hpp"
#include "runtime/cli/run_certificate.hpp"
#include "runtime/results/run_spending.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// Throws InputError if run `c` and run `first` protect different units, e.g. persons and rows,
/// because there is then no common guarantee.
void hold_same_neighbours(const NamedCertificate& first, const NamedCertificate& c) {
  const auto expect = [&](const char* key, const std::string& expected, const std::string& found) {
    if (found != expected)
      throw InputError(c.file.string() + ", " + key + ": expected that of " + first.file.string() +
                       ", " + (expected.empty() ? "none" : "'" + expected + "'") + ", found " +
                       (found.empty() ? "none" : "'" + found + "'"));
  };
  // Compares the unit first, because the user can change it.
  expect("unit", first.stated.unit, c.stated.unit);
  expect("max_rows", std::to_string(first.stated.max_rows), std::to_string(c.stated.max_rows));
  expect("neighbouring_relation", first.text("neighbouring_relation"),
         c.text("neighbouring_relation"));
}

std::vector<NamedCertificate> certificates_of(const std::vector<std::string>& runs) {
  std::vector<NamedCertificate> all;
  for (const std::string& run : runs) {
    NamedCertificate c = read_run_certificate(run);
    const auto same = std::ranges::find_if(all, [&](const NamedCertificate& earlier) {
      std::error_code none;
      return fs::equivalent(earlier.file, c.file, none);
    });
    if (same != all.end()) throw InputError(run + ": expected each run once, found it twice");
    if (!all.empty()) hold_same_neighbours(all.front(), c);
    all.push_back(std::move(c));
  }
  return all;
}

double common_delta(const std::vector<NamedCertificate>& all) {
  for (const NamedCertificate& c : all)
    if (c.stated.delta != all.front().stated.delta)
      throw InputError("account: expected --delta where runs state different ones, " +
                       privacy::number(all.front().stated.delta) + " and " +
                       privacy::number(c.stated.delta) + ", found none");
  return all.front().stated.delta;
}

/// Returns a text for the table that states how a run is counted: its method; then, unless its cost
/// is computed from a fixed list of releases, what is used instead (its epsilon and delta, its
/// noisy row count, or its whole budget); then whether it was refused or is unfinished.
std::string counted_as(const NamedCertificate& c, const privacy::RunSpending& spending) {
  std::string how = c.text("method");
  if (std::holds_alternative<privacy::StatedRun>(spending.run))
    how += ", its epsilon and delta";
  else if (std::holds_alternative<privacy::ChosenRun>(spending.run))
    how += ", planned by its noisy row count";
  else if (!std::holds_alternative<privacy::PlannedRun>(spending.run))
    how += ", its whole budget";
  if (c.stated.status == "refused") return how + ", refused: its noisy row count";
  if (!c.stated.is_finished()) return how + ", not finished: its plan";
  return how;
}

/// Returns the sum of a member of SpendingRun (epsilon or delta) over all runs, rounded up.
double sum_of(const std::vector<SpendingRun>& runs, double SpendingRun::*member) {
  constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
  long double sum = 0.0L;
  for (const SpendingRun& run : runs) {
    const long double before = sum;
    const long double term = run.*member;
    sum = before + term;
    // Rounding error of the addition (Knuth's TwoSum), exact.
    const long double added = sum - before;
    const long double error = (before - (sum - added)) + (term - added);
    if (error > 0.0L) sum = std::nextafter(sum, kInfinity);
  }
  const auto nearest = static_cast<double>(sum);
  return nearest >= sum ? nearest
                        : std::nextafter(nearest, std::numeric_limits<double>::infinity());
}

/// Returns the privacy cost of a run, from its certificate. If an unfinished run chooses its
/// releases during training, they are not known yet; the run then counts with its stated epsilon.
privacy::RunSpending spending_of_plan(const NamedCertificate& c) {
  const bool listed = !c.stated.releases.empty() || c.json.contains("filter") || c.stated.split ||
                      c.stated.order_fixed;
  if (listed) return spending_of(c.json, c.stated, c.file.string());
  return {.run = privacy::StatedRun{c.stated.epsilon, c.stated.delta}};
}

/// Returns the privacy cost of a run for the case that it was chosen after looking at other runs:
/// `spending` as it is, except for random allocation. The bound for that case adds Renyi
/// divergences, and this program has none for random allocation, so such a run counts with its
/// stated epsilon and delta.
privacy::RunSpending as_chosen(const privacy::RunSpending& spending,
                               const verify::StatedNumbers& stated) {
  if (!privacy::allocates(spending)) return spending;
  return {.run = privacy::StatedRun{stated.epsilon, stated.delta}};
}

/// Returns the privacy costs of runs for the case that all were fixed before the first of them
/// started. spendings: costs from the certificates. chosen: costs for the case that each was chosen
/// after looking at others (as_chosen). A run whose steps depend on its noisy number of examples
/// was not fixed, so its entry of `chosen` is used. Random allocation has only a privacy loss
/// distribution. If a run uses random allocation and another run has no such distribution, returns
/// `chosen`. group: maximum number of rows of a unit of privacy.
std::vector<privacy::RunSpending> as_fixed_ahead(const std::vector<privacy::RunSpending>& spendings,
                                                 const std::vector<privacy::RunSpending>& chosen,
                                                 std::uint64_t group) {
  const auto has_losses = [&](const privacy::RunSpending& s) {
    return std::holds_alternative<privacy::PlannedRun>(s.run) ||
           (group == 1 && std::holds_alternative<privacy::StatedRun>(s.run));
  };
  std::vector<privacy::RunSpending> fixed = spendings;
  for (std::size_t i = 0; i < fixed.size(); ++i)
    if (std::holds_alternative<privacy::ChosenRun>(fixed[i].run)) fixed[i] = chosen[i];
  if (std::ranges::any_of(fixed, privacy::allocates) && !std::ranges::all_of(fixed, has_losses))
    return chosen;
  return fixed;
}

}  // namespace

JointSpending joint_spending(const std::vector<SpendingRun>& runs, std::optional<double> delta) {
  // There are two bounds: the sum of the runs' epsilons, and the odometer's epsilon. If released
  // values decided which of them is returned, the result would be a bound only at the sum of both
  // bounds' deltas (privacy/README.md, "Several runs"). So the number of runs and their deltas
  // decide.
  constexpr std::size_t kAddedUp = 2;  // for more runs, the odometer's epsilon is smaller
  const double deltas = sum_of(runs, &SpendingRun::delta);
  const bool all_certified =
      std::ranges::none_of(runs, [](const SpendingRun& r) { return r.certificate.empty(); });
  JointSpending spent{.epsilon = std::numeric_limits<double>::infinity(), .delta = 0.0};
  if (delta)
    spent.delta = *delta;
  else
    for (const SpendingRun& run : runs)
      spent.delta = all_certified ? std::fmax(spent.delta, run.delta) : deltas;
  // Runs with the same settings have the same certificate, so each text is parsed only once.
  std::map<std::string, privacy::RunSpending> known;
  std::optional<NamedCertificate> first;
  bool took_another_course = false;  // a run was refused by its noisy row count, or lost its key
  std::vector<privacy::RunSpending> spendings;
  for (const SpendingRun& run : runs) {
    if (run.certificate.empty()) {
      spendings.push_back({.run = privacy::StatedRun{run.epsilon, run.delta}});
      continue;
    }
    auto at = known.find(run.certificate);
    if (at == known.end()) {
      const NamedCertificate c{parse_run_certificate(run.certificate, "a run"), "a run"};
      if (first)
        hold_same_neighbours(*first, c);
      else
        first = c;
      took_another_course =
          took_another_course || c.stated.status == "refused" || c.stated.lost_a_key();
      at = known.emplace(run.certificate, as_chosen(spending_of_plan(c), c.stated)).first;
    }
    spendings.push_back(at->second);
  }
  const double promised = sum_of(runs, &SpendingRun::epsilon);
  if (runs.size() <= kAddedUp && deltas <= spent.delta) {
    spent.epsilon = promised;
    return spent;
  }
  const std::uint64_t group = first ? first->stated.max_rows : 1;
  try {
    spent.epsilon = privacy::epsilon_as_chosen(spendings, spent.delta, group);
    return spent;
  } catch (const std::domain_error&) {  // the runs' deltas take too much of the total
  }
  // The sum of the runs' epsilons is always a bound, at the sum of their deltas. If released values
  // decided that this bound is used (took_another_course), the odometer's delta is added.
  const double added = took_another_course ? deltas + spent.delta : deltas;
  if (!delta) spent.delta = std::fmax(spent.delta, added);
  if (added <= spent.delta) spent.epsilon = promised;
  if (!std::isfinite(spent.epsilon))
    throw BudgetError(
        fmt::format("--total-delta: expected at least {}, the sum of the runs' deltas, found {}",
                    privacy::number(deltas), privacy::number(spent.delta)));
  return spent;
}

Answer several_runs(const std::vector<std::string>& runs, std::optional<double> delta,
                    bool fixed_ahead) {
  const std::vector<NamedCertificate> all = certificates_of(runs);
  const double joint_delta = delta ? *delta : common_delta(all);
  std::vector<privacy::RunSpending> spendings;
  spendings.reserve(all.size());
  for (const NamedCertificate& c : all)
    spendings.push_back(spending_of(c.json, c.stated, c.file.string()));
  const std::uint64_t group = all.front().stated.max_rows;
  std::vector<privacy::RunSpending> chosen_spendings;
  chosen_spendings.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    chosen_spendings.push_back(as_chosen(spendings[i], all[i].stated));
  const double chosen = privacy::epsilon_as_chosen(chosen_spendings, joint_delta, group);
  const std::vector<privacy::RunSpending> fixed_spendings =
      as_fixed_ahead(spendings, chosen_spendings, group);
  // The certificate of a refused run states the cost of its noisy number of examples, not the cost
  // of the training that was planned. So no bound is computed for the case that all runs were fixed
  // beforehand.
  const auto refused =
      std::ranges::find(all, "refused", [](const NamedCertificate& c) { return c.stated.status; });
  if (fixed_ahead && refused != all.end())
    throw InputError("--fixed-ahead: expected runs that were not refused, found " +
                     refused->file.string() +
                     ", which states what its noisy row count spent and not what was planned");
  const double fixed =
      refused != all.end()
          ? chosen
          : std::fmin(chosen, privacy::epsilon_fixed_ahead(fixed_spendings, joint_delta, group));

  Answer a;
  a.json = {{"epsilon", fixed_ahead ? fixed : chosen},
            {"delta", joint_delta},
            {"as_chosen_on_the_way", chosen},
            {"fixed_ahead", fixed},
            {"stated_as", fixed_ahead ? "fixed ahead" : "as chosen on the way"},
            {"runs", nlohmann::ordered_json::array()}};
  a.rows = {{"epsilon", rounded_up(fixed_ahead ? fixed : chosen) +
                            (fixed_ahead ? ", fixed ahead" : ", as chosen on the way")},
            {"delta", privacy::number(joint_delta)},
            {fixed_ahead ? "as chosen" : "fixed ahead",
             fixed_ahead ? rounded_up(chosen) + ", had a run been chosen by looking at another"
                         : rounded_up(fixed) +
                               ", had no run been chosen by looking at another: --fixed-ahead"}};
  if (const std::string& unit = all.front().stated.unit; !unit.empty()) {
    a.json["unit"] = unit;
    a.json["max_rows"] = group;
    a.rows.emplace_back("unit", fmt::format("up to {} rows with one text in {}", group, unit));
  } else {
    a.rows.emplace_back("unit",
                        "each row; if a person can have several rows, set unit in the schema");
  }
  std::size_t not_for_release = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const NamedCertificate& c = all[i];
    const std::string how = counted_as(c, fixed_spendings[i]);
    a.json["runs"].push_back({{"certificate", c.file.string()},
                              {"dataset", c.text("dataset")},
                              {"method", c.text("method")},
                              {"epsilon", c.stated.epsilon},
                              {"delta", c.stated.delta},
                              {"counted_as", how}});
    a.rows.emplace_back("run " + std::to_string(i + 1),
                        fmt::format("{} at {}, {}: {}", rounded_up(c.stated.epsilon),
                                    privacy::number(c.stated.delta), how, runs[i]));
    if (!c.texts("not_for_release").empty()) ++not_for_release;
  }
  if (not_for_release > 0) {
    const std::string note =
        fmt::format("{} of the runs {} not for release: these numbers hold while {} unpublished",
                    not_for_release, not_for_release == 1 ? "is" : "are",
                    not_for_release == 1 ? "it is" : "they are");
    a.json["note"] = note;
    a.rows.emplace_back("note", note);
  }
  return a;
}

}  // namespace cudp
