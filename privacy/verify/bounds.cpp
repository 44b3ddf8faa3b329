#include "privacy/verify/bounds.hpp"

#include <array>
#include <cstdio>
#include <stdexcept>

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

}  // namespace

const privacy::PrivacyBound& Bounds::epsilon(const privacy::Composition& composition,
                                             const privacy::AccountantOptions& options,
                                             double delta) {
  if (!refusal_.empty()) throw std::invalid_argument(refusal_);
  const auto [at, is_new] = known_.try_emplace(key_of(composition, options, delta));
  Answer& answer = at->second;
  if (is_new) {
    try {
      answer.bound = privacy::Accountant(composition, options).epsilon(delta);
    } catch (const std::exception& e) {
      answer.refusal = e.what();
      if (answer.refusal.empty()) answer.refusal = "no bound";
    }
  }
  if (!answer.refusal.empty()) throw std::invalid_argument(answer.refusal);
  return answer.bound;
}

}  // namespace cudp::verify
