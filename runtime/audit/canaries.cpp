#include "runtime/audit/canaries.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/data/examples.hpp"

namespace cudp {
namespace {

/// Returns random words for the audit's own choices. They are independent of the training's random
/// numbers, because the audit has a key of its own.
std::vector<std::uint32_t> words(const RandomKey& key, Stream purpose, std::size_t count) {
  return random_words({Generator::chacha20, key, purpose, 0}, count);
}

/// Returns the numbers 0 .. n - 1 in an order whose first `count` elements are a random sample.
std::vector<std::size_t> shuffled(std::size_t n, std::size_t count, const RandomKey& key) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::vector<std::uint32_t> random = words(key, Stream::sampling, count);
  for (std::size_t i = 0; i < count; ++i) std::swap(order[i], order[i + random[i] % (n - i)]);
  return order;
}

}  // namespace

std::vector<bool> draw_membership(std::size_t canaries, const RandomKey& key) {
  std::vector<bool> heads;
  for (const std::uint32_t w : words(key, Stream::selection, canaries))
    heads.push_back((w & 1) != 0);
  return heads;
}

std::vector<std::uint32_t> canary_parameters(std::size_t canaries, const Network& network) {
  std::vector<std::uint32_t> parameters;
  parameters.reserve(canaries);
  for (std::size_t i = 0; i < canaries; ++i)
    parameters.push_back(static_cast<std::uint32_t>(i * network.parameter_count / canaries));
  return parameters;
}

std::vector<std::uint32_t> members_of(const std::vector<std::uint32_t>& parameters,
                                      const std::vector<bool>& member, std::uint64_t rows) {
  std::vector<std::uint32_t> in;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (member[i]) in.insert(in.end(), rows, parameters[i]);
  return in;
}

ExampleCanaries mislabelled_canaries(const Dataset& train, const std::vector<bool>& member,
                                     std::uint64_t rows, const RandomKey& key) {
  const std::size_t m = member.size();
  const std::vector<std::size_t> order = shuffled(train.size(), m, key);
  const std::span all(order);
  ExampleCanaries out{.all = select_examples(train, all.first(m)),
                      .train = select_examples(train, all.subspan(m))};
  const auto classes = static_cast<std::uint32_t>(train.classes);
  const std::vector<std::uint32_t> random = words(key, Stream::acceptance, m);
  std::vector<std::size_t> in;
  for (std::size_t i = 0; i < m; ++i) {
    if (train.has_targets())  // use the bound of the target that is further away
      out.all.targets[i] = out.all.targets[i] < 0.0f ? 1.0f : -1.0f;
    else
      out.all.labels[i] =
          static_cast<std::uint8_t>((out.all.labels[i] + 1 + random[i] % (classes - 1)) % classes);
    if (member[i]) in.insert(in.end(), rows, i);
  }
  append_examples(select_examples(out.all, in), out.train);
  return out;
}

std::size_t Canaries::members() const {
  return static_cast<std::size_t>(std::ranges::count(member, true));
}

void add_gradient_canaries(Experiment& e, Canaries& canaries) {
  const std::size_t count = canaries.member.size();
  ensure(count <= e.network.parameter_count, "a canary for each parameter at most");
  const std::uint64_t rows = e.data.unit_rows;
  e.public_size = e.data.train.size() + count * rows;
  canaries.parameters = canary_parameters(count, e.network);
  append_blanks(e.data.train, canaries.members() * rows);
  e.backend.make_engine = [&canaries, rows, real = e.backend.make_engine](const Network& network,
                                                                          EngineSettings settings) {
    auto tap = std::make_shared<AuditTap>();
    tap->canaries = members_of(canaries.parameters, canaries.member, rows);
    tap->released = [&canaries](const ReleasedSum& sum) { canaries.scores->add(sum); };
    settings.audit = std::move(tap);
    return real(network, settings);
  };
}

void add_example_canaries(Experiment& e, const Canaries& canaries, const RandomKey& key) {
  const std::size_t n = e.data.train.size();
  ensure(canaries.member.size() <= n / 2, "canaries are half of the examples at most");
  const std::uint64_t rows = e.data.unit_rows;
  e.public_size = n + canaries.member.size() * (rows - 1);
  ExampleCanaries c = mislabelled_canaries(e.data.train, canaries.member, rows, key);
  e.data.train = std::move(c.train);
  e.data.test = std::move(c.all);
}

}  // namespace cudp
