#include "privacy/verify/bounds.hpp"

#include <array>
#include <cstdio>
#include <stdexcept>
#include <variant>
#include <vector>

#include "privacy/mechanism/mechanism_text.hpp"

namespace cudp::verify {
namespace {

std::string exact(double x) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%a ", x);
  return text.data();
}

std::string key_of(const privacy::Composition& c, const privacy::AccountantOptions& o,
                   double delta) {
  std::string key = std::to_string(c.group);
  for (const int choice : {static_cast<int>(c.relation), static_cast<int>(o.kind)})
    key.append(" ").append(std::to_string(choice));
  key.append(" ").append(exact(o.interval)).append(exact(o.coarseness)).append(exact(delta));
  key.append(std::to_string(o.max_distinct_releases)).append(" ");
  key.append(std::to_string(o.allocation_points));
  for (const double order : o.orders) key.append(" ").append(exact(order));
  for (const privacy::Release& r : c.releases)
    key.append("; ").append(std::to_string(r.count)).append(" ").append(exact_text(r.mechanism));
  return key;
}

/// Appends to `key`, the key of a cached bound, everything that determines the privacy of one
/// training or score. A visitor with an overload for each kind of run.
class SpendingKey {
 public:
  explicit SpendingKey(std::string& key) : key_(key) {}
  void operator()(const privacy::PlannedRun& run) const { releases("planned", run.releases); }
  void operator()(const privacy::ChosenRun& run) const { releases("chosen", run.releases); }
  void operator()(const privacy::RenyiFilteredRun& run) const {
    key_.append("renyi ").append(exact(run.order)).append(exact(run.divergence));
  }
  void operator()(const privacy::ZcdpFilteredRun& run) const {
    key_.append("zcdp ").append(exact(run.rho));
  }
  void operator()(const privacy::StatedRun& run) const {
    key_.append("stated ").append(exact(run.epsilon)).append(exact(run.delta));
  }
  void operator()(const privacy::TunedRun&) const {
    throw std::invalid_argument("expected candidates that are no selections, found one");
  }

 private:
  void releases(const char* name, const std::vector<privacy::Release>& all) const {
    key_.append(name);
    for (const privacy::Release& r : all)
      key_.append(", ").append(std::to_string(r.count)).append(" ").append(exact_text(r.mechanism));
  }

  std::string& key_;
};

std::string key_of(const privacy::Certificate::Tuning& tuning, double delta, std::uint64_t group) {
  std::string key = std::to_string(group) + " " + exact(delta);
  key.append(exact(tuning.law.eta)).append(exact(tuning.law.gamma));
  key.append(std::to_string(tuning.law.cap));
  if (tuning.count) key.append(" ").append(exact(tuning.count->training_delta));
  for (const auto& part : tuning.parts) {
    key.append("; ").append(exact(part.spending.failure));
    std::visit(SpendingKey(key), part.spending.run);
  }
  return key;
}

}  // namespace

template <class Bound, class Compute>
const Bound& Bounds::answer(Answers<Bound>& known, const std::string& key, const Compute& compute) {
  if (!refusal_.empty()) throw std::invalid_argument(refusal_);
  const auto [at, is_new] = known.try_emplace(key);
  Answer<Bound>& answer = at->second;
  if (is_new) {
    try {
      answer.bound = compute();
    } catch (const std::exception& e) {
      answer.refusal = e.what();
      if (answer.refusal.empty()) answer.refusal = "no bound";
    }
  }
  if (!answer.refusal.empty()) throw std::invalid_argument(answer.refusal);
  return answer.bound;
}

const privacy::PrivacyBound& Bounds::epsilon(const privacy::Composition& composition,
                                             const privacy::AccountantOptions& options,
                                             double delta) {
  return answer(known_, key_of(composition, options, delta),
                [&] { return privacy::Accountant(composition, options).epsilon(delta); });
}

const privacy::SelectionEpsilon& Bounds::selection(const privacy::Certificate::Tuning& tuning,
                                                   double delta, std::uint64_t group) {
  return answer(selections_, key_of(tuning, delta, group),
                [&] { return privacy::epsilon_of(tuning, delta, group); });
}

}  // namespace cudp::verify
