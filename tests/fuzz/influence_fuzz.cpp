// One hostile row in a random model among random rows. The input: three bytes of a seed, which
// chooses model, data, clipping and method; a byte for the kind of case and for what is in memory;
// then numbers that take the place of the first row's features, or of words' vectors.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "tests/fuzz/fuzz.hpp"
#include "tests/support/influence.hpp"

namespace cudp {
namespace {

constexpr std::size_t kRows = 6;

/// Puts the floats of `bytes` over `numbers`, again and again where there are too few.
void overwrite(std::span<float> numbers, std::span<const std::uint8_t> bytes) {
  const std::size_t count = bytes.size() / sizeof(float);
  for (std::size_t i = 0; i < numbers.size() && count > 0; ++i)
    std::memcpy(&numbers[i], bytes.data() + i % count * sizeof(float), sizeof(float));
}

}  // namespace
}  // namespace cudp

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  if (size < 4) return 0;
  const unsigned seed = data[0] + 256u * data[1] + 65536u * data[2];
  const unsigned kind = data[3];
  const bool texts = kind % 4 == 0;
  cases::InfluenceCase c = kind % 4 == 3 ? cases::dense_edge_case(seed, kind % 8 == 3, kRows)
                                         : cases::influence_case(seed, texts, kRows);
  const std::span<const std::uint8_t> rest(data + 4, size - 4);
  if (!texts) {
    const auto features = static_cast<std::size_t>(c.data.shape.size());
    overwrite(std::span(c.data.floats).first(features), rest);
  } else if (c.data.vectors) {
    WordVectors v = *c.data.vectors;
    overwrite(v.values, rest);
    c.data.vectors = std::make_shared<const WordVectors>(std::move(v));
  }
  static constexpr float kFillings[] = {NAN, 1e38f, 0.0f};
  set_scratch_fill(kind / 16 % 4 == 3 ? std::nullopt : std::optional(kFillings[kind / 16 % 4]));
  const cases::Influence found =
      cases::measure_influence([&] { return make_cpu_engine(c.net, c.settings); }, c);
  if (!found.fault.empty()) std::fprintf(stderr, "seed %u: %s\n", seed, found.fault.c_str());
  must_hold(found.fault.empty());
  return 0;
}
