#include "privacy/accountant.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "privacy/pld/composed_loss.hpp"
#include "privacy/pld/step_classes.hpp"
#include "privacy/rdp/advanced.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/curve.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The single Gaussian that purely Gaussian steps come to, for this relation and group; rounded up.
std::optional<double> gaussian_mu(const Question& question) {
  double square = 0.0;
  for (const Step& step : question.steps) {
    const auto* m = std::get_if<Gaussian>(&step.mechanism);
    const auto* p = std::get_if<PoissonGaussian>(&step.mechanism);
    if (m == nullptr && !(p != nullptr && p->q == 1.0)) return std::nullopt;
    const double sigma = m != nullptr ? m->sigma : p->sigma;
    square += static_cast<double>(step.count) / sigma / sigma;
  }
  const double moved = question.relation == Neighbours::replace_one ? 2.0 : 1.0;
  return moved * static_cast<double>(question.group) * std::sqrt(square) * (1.0 + 1e-14);
}

bool wants(Accountant asked, Accountant one) { return asked == one || asked == Accountant::best; }

}  // namespace

std::string_view name(Accountant accountant) {
  switch (accountant) {
    case Accountant::pld:
      return "pld";
    case Accountant::rdp:
      return "rdp";
    case Accountant::best:
      return "best";
    case Accountant::advanced:
      return "advanced";
  }
  return "unknown";
}

std::string_view bound_name(const Answer& answer) {
  return answer.accountant == Accountant::best ? "gaussian" : name(answer.accountant);
}

struct Account::State {
  Question question;
  std::optional<double> mu;
  std::map<pld::Side, pld::ComposedLoss> losses;
  bool idle = false;

  pld::ComposedLoss& loss(pld::Side side) {
    const auto found = losses.find(side);
    if (found != losses.end()) return found->second;
    return losses
        .emplace(side, pld::ComposedLoss(
                           pld::classes_of(question.steps, side, question.group, question.classes),
                           {.interval = question.interval, .looseness = question.looseness}))
        .first->second;
  }

  /// Calls bound(whom) where the Renyi bound is wanted. Where it is one of several, it may have no
  /// answer: a mechanism without a theorem, or no order with a finite divergence.
  template <class Bound>
  void by_renyi(const Bound& bound) const {
    if (!wants(question.accountant, Accountant::rdp)) return;
    Protected whom{.relation = question.relation, .group = question.group};
    if (question.accountant == Accountant::rdp) return bound(whom);
    // The same bound whichever direction is asked about: two directions are no worse than both.
    if (whom.relation != Neighbours::replace_one) whom.relation = Neighbours::add_or_remove;
    try {
      bound(whom);
    } catch (const std::domain_error&) {
      return;
    } catch (const std::invalid_argument&) {
      return;
    }
  }

  std::vector<pld::Side> sides() const {
    switch (question.relation) {
      case Neighbours::add:
        return {pld::Side::add};
      case Neighbours::remove:
        return {pld::Side::remove};
      case Neighbours::add_or_remove:
        return {pld::Side::add, pld::Side::remove};
      case Neighbours::replace_one:
        return {pld::Side::replace};
    }
    return {};
  }
};

Account::Account(Question question) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.question = std::move(question);
  Question& q = s.question;
  if (q.group < 1 || q.group > 1000)
    throw std::invalid_argument("group: expected 1 to 1000 examples, found " +
                                std::to_string(q.group));
  if (!(q.interval >= 0.0 && q.interval <= 1.0))
    throw std::invalid_argument("interval: expected a number in [0, 1], found " +
                                number(q.interval));
  if (!(q.looseness >= 1.0 && q.looseness <= 1e4))
    throw std::invalid_argument("looseness: expected a number in [1, 1e4], found " +
                                number(q.looseness));
  for (const Step& step : q.steps) check(step);
  for (const double order : q.orders) check_order(order);
  std::erase_if(q.steps, [](const Step& step) { return releases_nothing(step); });
  s.idle = q.steps.empty();
  s.mu = gaussian_mu(q);
}

Account::~Account() = default;
Account::Account(Account&&) noexcept = default;
Account& Account::operator=(Account&&) noexcept = default;
const Question& Account::question() const { return state_->question; }

Answer Account::epsilon(double delta) {
  check_delta(delta);
  State& s = *state_;
  const Question& q = s.question;
  Answer answer{.epsilon = infinity, .delta = delta, .accountant = q.accountant, .group = q.group};
  if (s.idle) {
    answer.epsilon = 0.0;
    return answer;
  }
  if (wants(q.accountant, Accountant::pld)) {
    answer.epsilon = 0.0;
    answer.accountant = Accountant::pld;
    for (const pld::Side side : s.sides()) {
      const pld::Bounds found = s.loss(side).epsilon(delta);
      if (side == pld::Side::add) answer.epsilon_add = found.upper;
      if (side == pld::Side::remove) answer.epsilon_remove = found.upper;
      answer.epsilon = std::fmax(answer.epsilon, found.upper);
      answer.epsilon_lower = std::fmax(answer.epsilon_lower, found.lower);
      answer.interval = std::fmax(answer.interval, found.interval);
    }
  }
  const auto improve = [&](double epsilon, Accountant by, double order) {
    for (std::optional<double>* side : {&answer.epsilon_add, &answer.epsilon_remove})
      if (*side) *side = std::fmin(**side, epsilon);
    if (!(epsilon < answer.epsilon)) return;
    answer.epsilon = epsilon;
    answer.accountant = by;
    answer.order = order;
  };
  if (wants(q.accountant, Accountant::best) && s.mu)
    improve(gaussian_epsilon(*s.mu, delta), Accountant::best, 0.0);
  if (q.accountant == Accountant::advanced)
    improve(advanced_epsilon(q.steps, delta, {.relation = q.relation, .group = q.group}),
            Accountant::advanced, 0.0);
  s.by_renyi([&](const Protected& whom) {
    const Guarantee rdp = epsilon_by_rdp(q.steps, delta, whom, q.orders);
    improve(rdp.epsilon, Accountant::rdp, rdp.order);
  });
  if (!std::isfinite(answer.epsilon))
    throw std::domain_error("no finite epsilon can be shown at delta " + number(delta) +
                            " by the accountant " + std::string(name(q.accountant)));
  answer.epsilon_lower = std::fmin(answer.epsilon_lower, answer.epsilon);
  return answer;
}

Answer Account::delta(double epsilon) {
  check_epsilon(epsilon);
  State& s = *state_;
  const Question& q = s.question;
  Answer answer{.epsilon = epsilon, .delta = 1.0, .accountant = q.accountant, .group = q.group};
  if (s.idle) {
    answer.delta = 0.0;
    return answer;
  }
  if (wants(q.accountant, Accountant::pld)) {
    answer.delta = 0.0;
    answer.accountant = Accountant::pld;
    for (const pld::Side side : s.sides()) {
      const pld::Bounds found = s.loss(side).delta(epsilon);
      if (side == pld::Side::add) answer.delta_add = found.upper;
      if (side == pld::Side::remove) answer.delta_remove = found.upper;
      answer.delta = std::fmax(answer.delta, found.upper);
      answer.delta_lower = std::fmax(answer.delta_lower, found.lower);
      answer.interval = std::fmax(answer.interval, found.interval);
    }
  }
  const auto improve = [&](double delta, Accountant by, double order) {
    for (std::optional<double>* side : {&answer.delta_add, &answer.delta_remove})
      if (*side) *side = std::fmin(**side, delta);
    if (!(delta < answer.delta)) return;
    answer.delta = delta;
    answer.accountant = by;
    answer.order = order;
  };
  if (wants(q.accountant, Accountant::best) && s.mu)
    improve(gaussian_delta(*s.mu, epsilon), Accountant::best, 0.0);
  if (q.accountant == Accountant::advanced)
    improve(advanced_delta(q.steps, epsilon, {.relation = q.relation, .group = q.group}),
            Accountant::advanced, 0.0);
  s.by_renyi([&](const Protected& whom) {
    const Guarantee rdp = delta_by_rdp(q.steps, epsilon, whom, q.orders);
    improve(rdp.delta, Accountant::rdp, rdp.order);
  });
  answer.delta_lower = std::fmin(answer.delta_lower, answer.delta);
  return answer;
}

std::vector<Answer> Account::epsilons(std::span<const double> deltas) {
  std::vector<Answer> answers;
  answers.reserve(deltas.size());
  for (const double delta : deltas) answers.push_back(epsilon(delta));
  return answers;
}

std::vector<Answer> Account::deltas(std::span<const double> epsilons) {
  std::vector<Answer> answers;
  answers.reserve(epsilons.size());
  for (const double epsilon : epsilons) answers.push_back(delta(epsilon));
  return answers;
}

std::vector<Answer> group_epsilons(const Question& question, std::span<const std::uint64_t> sizes,
                                   double delta) {
  std::vector<Answer> answers;
  answers.reserve(sizes.size());
  for (const std::uint64_t k : sizes) {
    Question one = question;
    one.group = k;
    answers.push_back(Account(std::move(one)).epsilon(delta));
  }
  return answers;
}

std::vector<Answer> group_epsilons(const Question& question, std::uint64_t largest, double delta) {
  std::vector<std::uint64_t> sizes(largest);
  std::iota(sizes.begin(), sizes.end(), 1);
  return group_epsilons(question, sizes, delta);
}

std::optional<double> vadhan_epsilon(const Question& question, std::uint64_t k, double delta) {
  check_delta(delta);
  Question single = question;
  single.group = 1;
  Account account(std::move(single));
  const auto size = static_cast<double>(k);
  // log of (e^(k epsilon) - 1) / (e^epsilon - 1)
  const auto log_factor = [&](double epsilon) {
    const auto log_expm1 = [](double x) {
      return x > 1.0 ? x + std::log1p(-std::exp(-x)) : std::log(std::expm1(x));
    };
    return epsilon > 0.0 ? log_expm1(size * epsilon) - log_expm1(epsilon) : std::log(size);
  };
  const auto within = [&](double epsilon) {
    const double found = account.delta(epsilon).delta;
    return found == 0.0 || std::log(found) + log_factor(epsilon) <= std::log(delta);
  };
  double low = account.epsilon(delta).epsilon, high = low;
  if (within(low)) return size * low;
  for (int i = 0; !within(high); ++i) {
    if (i == 12) return std::nullopt;
    low = high;
    high *= 1.4;
  }
  while (high - low > 1e-3 * high) {
    const double middle = 0.5 * (low + high);
    (within(middle) ? high : low) = middle;
  }
  return size * high;
}

}  // namespace cudp::privacy
