#include "runtime/training/rank_command.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <sodium.h>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

/// Returns a hash of the parts of the state that must be the same on all ranks.
std::string hash_of(const MethodState& s) {
  crypto_generichash_state hash;
  ::crypto_generichash_init(&hash, nullptr, 0, crypto_generichash_BYTES);
  const auto add = [&](const void* bytes, std::size_t size) {
    ::crypto_generichash_update(&hash, static_cast<const unsigned char*>(bytes), size);
  };
  const std::string numbers = s.numbers.dump();
  add(numbers.data(), numbers.size());
  for (const auto& [name, array] : s.arrays)
    if (!is_per_example(name)) add(array.data(), array.size() * sizeof(float));
  std::string code(crypto_generichash_BYTES, '\0');
  ::crypto_generichash_final(&hash, reinterpret_cast<unsigned char*>(code.data()), code.size());
  return code;
}

}  // namespace

void announce(Ranks& ranks, RankCommand command) {
  if (ranks.alone()) return;
  ranks.broadcast("the next command", std::as_writable_bytes(std::span(&command, 1)));
}

RankCommand next_command(Ranks& ranks) {
  RankCommand command{};
  ranks.broadcast("the next command", std::as_writable_bytes(std::span(&command, 1)),
                  Patience::unlimited);
  return command;
}

MethodState joined(MethodState mine, Ranks& ranks) {
  if (ranks.alone()) return mine;
  const std::vector<std::string> codes = gather_text(ranks, "the state's hash", hash_of(mine));
  for (std::size_t r = 1; r < codes.size(); ++r)
    if (codes[r] != codes[0]) {
      const std::string why = fmt::format(
          "rank {} has another model than rank 0: its processor or a library computes differently, "
          "or its memory is faulty; nothing of this step was written",
          r);
      ranks.abort(why, Exit::failure);
      throw RanksError(why);
    }
  // A rank without examples lacks the arrays with one number per example.
  for (const char* const name : kPerExampleArrays) {
    const auto array =
        std::ranges::find(mine.arrays, name, &std::pair<std::string, std::vector<float>>::first);
    const auto own = array != mine.arrays.end() ? std::as_bytes(std::span(array->second))
                                                : std::span<const std::byte>();
    const std::vector<std::string> parts = ranks.gather("numbers by example", own);
    if (!ranks.leads() || array == mine.arrays.end()) continue;
    std::vector<float>& all = array->second;
    all.clear();
    for (const std::string& part : parts) {
      const std::size_t at = all.size();
      all.resize(at + part.size() / sizeof(float));
      std::memcpy(all.data() + at, part.data(), part.size());
    }
  }
  return mine;
}

MethodState part_of(MethodState joined, const Dataset& train) {
  if (train.whole == 0) return joined;
  for (auto& [name, array] : joined.arrays) {
    if (!is_per_example(name)) continue;
    ensure(array.size() == train.whole, "a state of other examples");
    const auto first = array.begin() + static_cast<std::ptrdiff_t>(train.first);
    array = std::vector<float>(first, first + static_cast<std::ptrdiff_t>(train.size()));
  }
  return joined;
}

}  // namespace cudp
