#include "privacy/mechanism/mechanism_text.hpp"

#include <cstddef>
#include <utility>
#include <variant>

#include "privacy/text/words.hpp"

namespace cudp::privacy {
namespace {

std::string field(const std::string& word) { return std::string(1, ' ').append(word); }
std::string field(double value) { return field(hex(value)); }
std::string field(std::uint64_t value) { return field(std::to_string(value)); }

struct Fields {
  std::string operator()(const Gaussian& m) const { return field(m.sigma); }
  std::string operator()(const PoissonGaussian& m) const { return field(m.q) + field(m.sigma); }
  std::string operator()(const FixedSizeGaussian& m) const {
    return field(m.n) + field(m.batch) + field(m.sigma);
  }
  std::string operator()(const TruncatedPoissonGaussian& m) const {
    return field(m.n) + field(m.q) + field(m.max_batch) + field(m.sigma);
  }
  std::string operator()(const AllocatedGaussian& m) const {
    return field(m.steps) + field(m.sigma);
  }
  std::string operator()(const GaussianMixture& m) const {
    std::string text = field(m.sigma) + field(std::uint64_t{m.sensitivities.size()});
    for (std::size_t i = 0; i < m.sensitivities.size(); ++i)
      text += field(m.sensitivities[i]) + field(m.probabilities[i]);
    return text;
  }
  std::string operator()(const Laplace& m) const { return field(m.scale); }
  std::string operator()(const PoissonLaplace& m) const { return field(m.q) + field(m.scale); }
  std::string operator()(const BoundedRange& m) const { return field(m.epsilon); }
  std::string operator()(const ApproximateDp& m) const { return field(m.epsilon) + field(m.delta); }
};

// The elements of a braced list are evaluated from left to right, so that the fields are read in
// the order of the text.
void take(Gaussian& m, std::string_view& line) { m = {take_number(line)}; }
void take(PoissonGaussian& m, std::string_view& line) {
  m = {take_number(line), take_number(line)};
}
void take(FixedSizeGaussian& m, std::string_view& line) {
  m = {take_count(line), take_count(line), take_number(line)};
}
void take(TruncatedPoissonGaussian& m, std::string_view& line) {
  m = {take_count(line), take_number(line), take_count(line), take_number(line)};
}
void take(AllocatedGaussian& m, std::string_view& line) {
  m = {take_count(line), take_number(line)};
}
void take(GaussianMixture& m, std::string_view& line) {
  m.sigma = take_number(line);
  const std::uint64_t size = take_count(line);
  for (std::uint64_t i = 0; i < size; ++i) {
    m.sensitivities.push_back(take_number(line));
    m.probabilities.push_back(take_number(line));
  }
}
void take(Laplace& m, std::string_view& line) { m = {take_number(line)}; }
void take(PoissonLaplace& m, std::string_view& line) { m = {take_number(line), take_number(line)}; }
void take(BoundedRange& m, std::string_view& line) { m = {take_number(line)}; }
void take(ApproximateDp& m, std::string_view& line) { m = {take_number(line), take_number(line)}; }

/// Reads the mechanism with the name `called` from `line`, if it is the I-th type of the variant
/// Mechanism or a later one; tries one type and calls itself for the next. Returns false if none
/// has that name.
template <std::size_t I = 0>
bool take_named(std::string_view called, std::string_view& line, Mechanism& mechanism) {
  if constexpr (I == std::variant_size_v<Mechanism>) {
    return false;
  } else {
    std::variant_alternative_t<I, Mechanism> one;
    if (name(Mechanism(one)) != called) return take_named<I + 1>(called, line, mechanism);
    take(one, line);
    mechanism = std::move(one);
    return true;
  }
}

}  // namespace

std::string exact_text(const Mechanism& mechanism) {
  return std::string(name(mechanism)) + std::visit(Fields{}, mechanism);
}

Mechanism take_mechanism(std::string_view& line) {
  const std::string_view called = take_word(line);
  Mechanism mechanism;
  if (!take_named(called, line, mechanism)) expected("a mechanism's name", called);
  check(mechanism);
  return mechanism;
}

}  // namespace cudp::privacy
