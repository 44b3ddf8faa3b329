#include "runtime/device/rank_sums.hpp"

#include <set>

#include <spdlog/fmt/fmt.h>

namespace cudp {

std::string first_error(Ranks& ranks, const char* what, const std::string& mine) {
  const std::vector<std::string> all = gather_text(ranks, what, mine);
  std::string first;
  for (std::size_t r = 0; first.empty() && r < all.size(); ++r)
    if (!all[r].empty()) first = fmt::format("rank {}: {}", r, all[r]);
  broadcast_text(ranks, what, first);
  return first;
}

std::string why_not_on_devices(Ranks& ranks, const DeviceSums& mine) {
  if (std::string why = first_error(ranks, "whether devices can add up", mine.refusal);
      !why.empty())
    return why;
  const std::vector<std::string> libraries =
      gather_text(ranks, "what adds up on devices", mine.library);
  const std::vector<std::string> devices = gather_text(ranks, "devices", mine.device);
  const std::vector<std::string> sharing =
      gather_text(ranks, "whether devices may be shared", mine.may_share ? "yes" : "no");
  std::string why;
  std::set<std::string> seen;
  for (std::size_t r = 0; why.empty() && r < devices.size(); ++r) {
    if (libraries[r] != libraries[0])
      why = fmt::format("rank {} has {}, rank 0 {}", r, libraries[r], libraries[0]);
    else if (!seen.insert(devices[r]).second && sharing[r] != "yes")
      why = fmt::format(
          "rank {} shares its device with another, which NCCL 2.30 and later allow "
          "with NCCL_MULTI_RANK_GPU_ENABLE=1",
          r);
  }
  broadcast_text(ranks, "why not on devices", why);
  return why;
}

namespace {

/// Returns the SplitMix64 hash of i, which serves as test data.
std::uint64_t mixed(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

}  // namespace

std::uint64_t test_word(int rank, std::size_t i) {
  return (static_cast<std::uint64_t>(rank) + 1) * mixed(i);
}

std::uint64_t test_sum(int ranks, std::size_t i) {
  const auto n = static_cast<std::uint64_t>(ranks);
  return n * (n + 1) / 2 * mixed(i);
}

}  // namespace cudp
