#pragma once
// How ranks agree whether their devices add up the sums of a step by themselves.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// What a rank says of its device before sums are made on it.
struct DeviceSums {
  std::string refusal{};   ///< why it cannot; empty: it can
  std::string library{};   ///< by what, which must be the same on all: "NCCL 2.28.9"
  std::string device{};    ///< tells it from the devices of all other ranks
  bool may_share = false;  ///< whether several ranks may have one device
};

/// Why the ranks' devices cannot add up, one rank's reason; empty where all can. The same on all.
std::string why_not_on_devices(Ranks& ranks, const DeviceSums& mine);

/// What is wrong on the first rank that has something to say, with its number; empty where none
/// has. The same on all.
std::string first_trouble(Ranks& ranks, const char* what, const std::string& mine);

/// Numbers of 64 bits to try a sum with: word i of a rank, and of the sum over all ranks.
std::uint64_t tried_word(int rank, std::size_t i);
std::uint64_t tried_sum(int ranks, std::size_t i);

/// Brings the devices together and tries a sum of n words in `words`, device memory, which are 0
/// afterwards. Returns why it cannot be done, the same line on all ranks; empty where it is.
template <class Gpu>
std::string join_on_devices(Gpu& gpu, Ranks& ranks, std::uint64_t* words, std::size_t n) {
  if (std::string why = why_not_on_devices(ranks, gpu.device_sums()); !why.empty()) return why;
  const auto trouble_of = [&](const char* what, const auto& work) {
    std::string mine;
    try {
      work();
    } catch (const RanksError&) {
      throw;
    } catch (const Error& e) {
      mine = e.what();
    }
    return first_trouble(ranks, what, mine);
  };
  std::string id;
  std::string trouble = trouble_of("whether there is an id", [&] {
    if (ranks.leads()) id = gpu.id_for_sums();
  });
  if (trouble.empty()) {
    broadcast_text(ranks, "the id", id);
    trouble =
        trouble_of("whether the devices have come together", [&] { gpu.join_ranks(ranks, id); });
  }
  if (trouble.empty())
    trouble = trouble_of("whether the devices add up", [&] {
      std::vector<std::uint64_t> tried(n);
      for (std::size_t i = 0; i < n; ++i) tried[i] = tried_word(ranks.rank(), i);
      gpu.upload(words, tried.data(), n * sizeof tried[0]);
      gpu.sum_over_ranks(words, n);
      gpu.download(tried.data(), words, n * sizeof tried[0]);
      gpu.clear(words, n * sizeof tried[0]);
      for (std::size_t i = 0; i < n; ++i)
        if (tried[i] != tried_sum(ranks.size(), i)) throw Error("a sum that was tried is wrong");
    });
  if (!trouble.empty()) gpu.leave_ranks();
  return trouble;
}

}  // namespace cudp
