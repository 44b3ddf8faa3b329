#include "privacy/verify/tuning.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <variant>

#include "privacy/filter.hpp"
#include "privacy/text/number.hpp"

namespace cudp::verify {
namespace {

using privacy::number;
using Tuning = privacy::Certificate::Tuning;

/// Largest relative difference between two epsilons that is attributed to their computation on
/// different machines.
constexpr double kSameEpsilon = 1e-6;

/// Returns the releases with equal mechanisms merged into one entry, whose counts are added.
std::vector<privacy::Release> merged(const std::vector<privacy::Release>& releases) {
  std::vector<privacy::Release> all;
  for (const privacy::Release& release : releases) {
    const auto found = std::ranges::find(all, release.mechanism, &privacy::Release::mechanism);
    if (found == all.end())
      all.push_back(release);
    else
      found->count += release.count;
  }
  return all;
}

/// Returns whether the releases `made` are among `allowed`: each mechanism in `made` must be in
/// `allowed` with at least the same count.
bool includes(const std::vector<privacy::Release>& allowed,
              const std::vector<privacy::Release>& made) {
  const std::vector<privacy::Release> all = merged(allowed);
  return std::ranges::all_of(merged(made), [&](const privacy::Release& release) {
    const auto found = std::ranges::find(all, release.mechanism, &privacy::Release::mechanism);
    return found != all.end() && found->count >= release.count;
  });
}

/// Returns whether `part`, the privacy that the certificate states for the training of one
/// candidate of a tuning, is at least what the released training `c` spent. If the tuning released
/// one noisy number of examples for all trainings (c.tuning->count), that number has its own part
/// of the budget, so `part` only has to cover the rest of the training's releases.
bool covers(const privacy::RunSpending& part, const StatedNumbers& c) {
  const bool counted_once = c.tuning->count.has_value();
  if (const auto* planned = std::get_if<privacy::PlannedRun>(&part.run))
    return (counted_once || !c.split) && !c.lost_a_key() &&
           includes(planned->releases, counted_once ? c.plan_releases() : c.releases) &&
           part.failure >= c.failure;
  if (const auto* stated = std::get_if<privacy::StatedRun>(&part.run))
    return stated->epsilon >= (counted_once ? c.plan_epsilon() : c.training_epsilon) &&
           stated->delta >= (counted_once ? c.plan_delta() : c.training_delta);
  const auto* renyi = std::get_if<privacy::RenyiFilteredRun>(&part.run);
  // DP-AGD alone has a zCDP filter. For other methods a part with one is no bound on the releases.
  if (renyi == nullptr && c.method != "dp-agd") return false;
  const double order = renyi != nullptr ? renyi->order : 0.0;
  if ((renyi != nullptr) != (c.order_fixed && c.order > 0.0)) return false;
  if (renyi != nullptr && order != c.order) return false;
  const privacy::Filter filter(
      privacy::renyi_budget(order, c.plan_epsilon(), c.plan_delta() - c.failure, 0.0, c.max_rows));
  const double spent =
      renyi != nullptr ? renyi->divergence : std::get<privacy::ZcdpFilteredRun>(part.run).rho;
  return spent >= filter.limit() * (1.0 - 1e-9) && part.failure >= c.failure;
}

/// Settings whose empty text means the default or nothing. config.toml has no line for an empty
/// one.
constexpr std::string_view kMayBeEmpty[] = {"model", "activation", "class-weights", "init",
                                            "freeze"};

std::optional<double> number_in(std::string_view text) {
  double x = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return x;
}

/// Removes the first part of a list with commas from `list`, and returns it without blanks around
/// it.
std::string_view take_part(std::string_view& list) {
  const std::size_t end = std::min(list.find(','), list.size());
  std::string_view part = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  while (part.starts_with(' ')) part.remove_prefix(1);
  while (part.ends_with(' ')) part.remove_suffix(1);
  return part;
}

/// Returns whether a setting of a candidate is the one in config.toml, which has numbers in another
/// form, names of files without their folders, and escapes of special characters. A list, such as
/// "1,0.5", is compared part by part.
bool is_same_value(std::string of_candidate, std::string written) {
  std::erase(of_candidate, '\\');
  std::erase(written, '\\');
  if (std::ranges::count(of_candidate, ',') != std::ranges::count(written, ',')) return false;
  std::string_view ours = of_candidate, theirs = written;
  while (!ours.empty() || !theirs.empty()) {
    const std::string_view one = take_part(ours), other = take_part(theirs);
    const std::optional<double> number = number_in(one);
    if (number && number == number_in(other)) continue;
    const auto name_in = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
    if (one != other && name_in(one) != name_in(other)) return false;
  }
  return true;
}

/// Returns the position of the setting in a candidate's text that follows the value at `at`: that
/// of ", KEY ". A value may have commas of its own. Returns npos if no setting follows.
std::size_t next_setting(std::string_view candidate, std::size_t at) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  for (at = candidate.find(", ", at); at != std::string_view::npos;
       at = candidate.find(", ", at + 1)) {
    const std::string_view next = candidate.substr(at + 2);
    const std::size_t end = next.find_first_not_of(kLetters);
    if (end != std::string_view::npos && end > 0 && next[end] == ' ' && next[0] >= 'a') break;
  }
  return at;
}

/// Returns whether the settings in a candidate's text, such as "lr 0.5, clip 1", are those of the
/// released training's config.toml. `device` is not compared: config.toml has the device that the
/// program chose.
bool has_settings_of(std::string_view candidate, const Settings& settings) {
  while (!candidate.empty()) {
    const std::size_t space = candidate.find(' ');
    if (space == std::string_view::npos) return false;
    const std::string key(candidate.substr(0, space));
    const std::size_t end = next_setting(candidate, space + 1);
    const std::string value(candidate.substr(space + 1, end - std::min(end, space + 1)));
    const bool may_be_empty = std::ranges::find(kMayBeEmpty, key) != std::end(kMayBeEmpty);
    if (value.empty()
            ? !may_be_empty
            : !settings.has(key) || (key != "device" && !is_same_value(value, settings.text(key))))
      return false;
    candidate = end == std::string_view::npos ? "" : candidate.substr(end + 2);
  }
  return true;
}

/// Returns whether the cost that a tuning's certificate states for the score of a candidate
/// (`part`) is at least the actual cost of the released score. A score is computed from the noisy
/// test metrics of held-out rows.
bool covers_score(const privacy::RunSpending& part, const StatedNumbers& c) {
  if (const auto* planned = std::get_if<privacy::PlannedRun>(&part.run))
    return includes(planned->releases,
                    {{privacy::Gaussian{c.holdout->sigma}, c.holdout->releases}});
  const auto* stated = std::get_if<privacy::StatedRun>(&part.run);
  return stated != nullptr && stated->epsilon >= c.holdout->epsilon &&
         stated->delta >= c.holdout->delta;
}

/// Checks how a tuning divided its budget (4 % of epsilon and 10 % of delta for the noisy number of
/// examples, the other part for the selection), and that the released training used this noisy
/// number. Adds a line to `wrong` for each difference.
void check_count(const privacy::CountSplit& count, const StatedNumbers& c,
                 std::vector<std::string>& wrong) {
  const auto same = [&](const char* what, double expected, double found) {
    if (!(found == expected))
      wrong.push_back(std::string("tuning.size_release.") + what + ": expected " +
                      number(expected) + ", found " + number(found));
  };
  constexpr double kDown = 1.0 - 0x1p-52;
  same("epsilon, 4 % of all", 0.04 * c.epsilon, count.count_epsilon);
  same("delta, 10 % of all", 0.1 * c.delta, count.count_delta);
  same("selection_epsilon, the rest", (c.epsilon - 0.04 * c.epsilon) * kDown,
       count.training_epsilon);
  same("selection_delta, the rest", (c.delta - 0.1 * c.delta) * kDown, count.training_delta);
  try {
    privacy::check(count);
  } catch (const std::invalid_argument& e) {
    wrong.push_back(std::string("tuning.size_release: ") + e.what());
  }
  if (!c.split) {
    wrong.emplace_back(
        "size_release: expected the part of the budget that the tuning states, found none");
    return;
  }
  same("noise_std, that of the training's size_release", c.split->sigma, count.sigma);
  same("epsilon, that of the training's size_release", c.split->count_epsilon, count.count_epsilon);
  same("delta, that of the training's size_release", c.split->count_delta, count.count_delta);
}

}  // namespace

std::vector<std::string> check_tuning(const Tuning& tuning, const StatedNumbers& c,
                                      const Settings& settings, Bounds& bounds) {
  std::vector<std::string> wrong;
  // A tuning ends without a release if a training of it lost its key.
  if (c.lost_a_key()) wrong.emplace_back("keys_lost: expected none in a tuning, found one or more");
  if (tuning.grid.empty()) wrong.emplace_back("tuning.grid: expected candidates, found none");
  if (const std::string expected = privacy::checksum_of_grid(tuning.grid);
      expected != tuning.grid_checksum)
    wrong.push_back("tuning.grid_checksum: expected " + expected + " of the grid, found " +
                    tuning.grid_checksum);
  // No separate costs of scores are required if every part is a StatedRun that is large enough for
  // the score, too: each unit of privacy is either trained on or held out.
  const bool held_out = c.holdout && c.holdout->releases > 0;
  const bool has_scores = std::ranges::any_of(tuning.parts, &Tuning::Part::of_score);
  const bool scored =
      held_out && (has_scores || !std::ranges::all_of(tuning.parts, [&](const Tuning::Part& part) {
                     return std::holds_alternative<privacy::StatedRun>(part.spending.run) &&
                            covers_score(part.spending, c);
                   }));
  bool covered = false, is_of_grid = false;
  for (const bool of_score : {false, true}) {
    std::vector<int> times(tuning.grid.size(), 0);
    for (const Tuning::Part& part : tuning.parts) {
      if (part.of_score != of_score) continue;
      for (const std::uint64_t candidate : part.candidates)
        if (candidate < times.size())
          ++times[candidate];
        else
          wrong.push_back("tuning.spending: expected candidates of the grid, found number " +
                          std::to_string(candidate));
      try {
        if (of_score || !covers(part.spending, c)) continue;
        covered = true;
        is_of_grid = is_of_grid || std::ranges::any_of(part.candidates, [&](std::uint64_t i) {
                       return i < tuning.grid.size() &&
                              (!tuning.grid[i].empty() || tuning.grid.size() == 1) &&
                              has_settings_of(tuning.grid[i], settings);
                     });
      } catch (const std::exception& e) {
        wrong.push_back(std::string("tuning.spending: ") + e.what());
      }
    }
    const int due = of_score ? (scored ? 1 : 0) : 1;
    for (std::size_t i = 0; i < times.size(); ++i)
      if (times[i] != due)
        wrong.push_back("tuning.spending: expected " + std::to_string(due) + " part for the " +
                        (of_score ? "score" : "training") + " of candidate " + std::to_string(i) +
                        ", found " + std::to_string(times[i]));
  }
  if (!covered)
    wrong.emplace_back("tuning.spending: expected that of the released training, found others");
  else if (!is_of_grid)
    wrong.emplace_back(
        "tuning.grid: expected a candidate with the settings of config.toml, whose spending is "
        "that of the released training, found others");
  if (scored && std::ranges::none_of(tuning.parts, [&](const Tuning::Part& part) {
        return part.of_score && covers_score(part.spending, c);
      }))
    wrong.emplace_back("tuning.spending: expected that of the released score, found less");
  if (tuning.count) check_count(*tuning.count, c, wrong);
  try {
    const privacy::Stopping stopping(tuning.law);
    if (!(std::fabs(tuning.mean - stopping.mean()) <= 1e-9 * stopping.mean()))
      wrong.push_back("tuning.expected_trainings: expected " + number(stopping.mean()) +
                      ", found " + number(tuning.mean));
    const privacy::SelectionEpsilon bound = bounds.selection(tuning, c.delta, c.max_rows);
    // If the noisy number of examples has its own part of the budget, the selection's bound must be
    // within the other part. Otherwise the certificate's epsilon is the selection's bound.
    if (tuning.count ? !(bound.epsilon <= tuning.count->training_epsilon * (1.0 + kSameEpsilon))
                     : !(std::fabs(c.epsilon - bound.epsilon) <= kSameEpsilon * bound.epsilon))
      wrong.push_back("certificate's epsilon, of the whole selection: expected " +
                      number(bound.epsilon) + ", found " +
                      number(tuning.count ? tuning.count->training_epsilon : c.epsilon));
    if (bound.by != tuning.by || std::fabs(bound.order - tuning.order) > 1e-9 * bound.order)
      wrong.emplace_back("tuning.bound: expected the smaller one and its order, found another");
  } catch (const std::exception& e) {
    wrong.push_back(std::string("tuning: ") + e.what());
  }
  if (c.bounds_groups) wrong.emplace_back("groups: expected none for a selection, found a table");
  return wrong;
}

}  // namespace cudp::verify
