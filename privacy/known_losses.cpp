#include "privacy/known_losses.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/rdp/curve.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// Maximum number of entries in a thread's cache of epsilons (known_epsilon()).
constexpr std::size_t kMaxKnown = 64;
/// Largest number of releases of a composition that is cached. A longer one usually grows step by
/// step, and each of its bounds is needed only once.
constexpr std::size_t kMaxReleases = 256;

struct Known {
  LossQuestion question;
  PrivacyBound answer;
};

std::deque<Known>& all_known() {
  thread_local std::deque<Known> known;
  return known;
}

BoundStore*& bound_store() {
  static BoundStore* store = nullptr;
  return store;
}

std::string text_of_releases(std::span<const Release> releases) {
  std::string text;
  for (const Release& r : releases)
    text += "; " + std::to_string(r.count) + " " + exact_text(r.mechanism);
  return text;
}

std::string text_of(const LossQuestion& question) {
  // Names all members, so that a new member does not compile until it is part of the text, too.
  const auto& [releases, change, group, max_distinct, grid, from_below, interval, coarseness,
               delta] = question;
  std::string text = "pld";
  for (const std::uint64_t n :
       {static_cast<std::uint64_t>(change), group, std::uint64_t{max_distinct},
        std::uint64_t{grid.points}, std::uint64_t{from_below}})
    text += " " + std::to_string(n);
  for (const double x : {grid.cut, interval, coarseness, delta}) text += " " + number(x);
  return text + text_of_releases(releases);
}

}  // namespace

std::optional<PrivacyBound> known_epsilon(const LossQuestion& question) {
  const auto found = std::ranges::find(all_known(), question, &Known::question);
  if (found != all_known().end()) return found->answer;
  if (bound_store() == nullptr || question.releases.size() > kMaxReleases) return std::nullopt;
  return bound_store()->find(text_of(question));
}

void keep_epsilon(LossQuestion question, const PrivacyBound& answer) {
  if (question.releases.size() > kMaxReleases) return;
  if (bound_store() != nullptr) bound_store()->add(text_of(question), answer);
  std::deque<Known>& known = all_known();
  known.push_front({std::move(question), answer});
  if (known.size() > kMaxKnown) known.pop_back();
}

PrivacyBound known_epsilon_by_rdp(std::span<const Release> releases, double delta,
                                  const Neighbours& neighbours, std::span<const double> orders) {
  if (bound_store() == nullptr || releases.size() > kMaxReleases)
    return epsilon_by_rdp(releases, delta, neighbours, orders);
  const auto& [relation, group] = neighbours;
  std::string question = "rdp " + std::to_string(static_cast<int>(relation)) + " " +
                         std::to_string(group) + " " + number(delta) + " at";
  for (const double order : orders) question += " " + number(order);
  question += text_of_releases(releases);
  if (const std::optional<PrivacyBound> known = bound_store()->find(question)) return *known;
  const PrivacyBound bound = epsilon_by_rdp(releases, delta, neighbours, orders);
  bound_store()->add(question, bound);
  return bound;
}

void use_bound_store(BoundStore* store) { bound_store() = store; }

BoundStore* used_bound_store() { return bound_store(); }

}  // namespace cudp::privacy
