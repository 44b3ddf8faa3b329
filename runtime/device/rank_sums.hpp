#pragma once
// Agreement among the ranks (processes) on whether their devices add the sums of a step directly.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// Properties of a rank's device, which the ranks (processes) exchange to decide whether the
/// devices can add up the ranks' sums directly, without the host.
struct DeviceSums {
  std::string refusal{};  ///< reason why the device cannot add sums; empty if it can
  /// Library that would add, e.g. "NCCL 2.28.9"; must be the same on all ranks.
  std::string library{};
  std::string device{};    ///< identifier, unique among all devices of all ranks
  bool may_share = false;  ///< several ranks may use this device
};

/// Returns why the ranks' devices cannot add up sums directly; empty if they can. All ranks get the
/// same text, that of the first rank with a reason. mine: properties of this rank's device.
std::string why_not_on_devices(Ranks& ranks, const DeviceSums& mine);

/// Exchanges error messages between the ranks, and returns that of the first rank that has one,
/// with its number; empty if none has. what: name of this exchange. mine: this rank's error, or
/// empty.
std::string first_error(Ranks& ranks, const char* what, const std::string& mine);

/// Returns word i of the test data with which a rank checks a sum over ranks.
std::uint64_t test_word(int rank, std::size_t i);
/// Returns word i of the sum of the test data of `ranks` ranks.
std::uint64_t test_sum(int ranks, std::size_t i);

/// Connects the devices of all ranks, and tests them with a sum of n words over ranks. words:
/// device memory for the test, zeroed afterwards. Returns "" on success, otherwise the reason, the
/// same line on all ranks.
template <class Gpu>
std::string join_on_devices(Gpu& gpu, Ranks& ranks, std::uint64_t* words, std::size_t n) {
  if (std::string why = why_not_on_devices(ranks, gpu.device_sums()); !why.empty()) return why;
  const auto error_of = [&](const char* what, const auto& work) {
    std::string mine;
    try {
      work();
    } catch (const RanksError&) {
      throw;
    } catch (const Error& e) {
      mine = e.what();
    }
    return first_error(ranks, what, mine);
  };
  std::string id;
  std::string error = error_of("whether there is an id", [&] {
    if (ranks.leads()) id = gpu.id_for_sums();
  });
  if (error.empty()) {
    broadcast_text(ranks, "the id", id);
    error = error_of("whether the devices have come together", [&] { gpu.join_ranks(ranks, id); });
  }
  if (error.empty())
    error = error_of("whether the devices add up", [&] {
      std::vector<std::uint64_t> tried(n);
      for (std::size_t i = 0; i < n; ++i) tried[i] = test_word(ranks.rank(), i);
      gpu.upload(words, tried.data(), n * sizeof tried[0]);
      gpu.sum_over_ranks(words, n);
      gpu.download(tried.data(), words, n * sizeof tried[0]);
      gpu.clear(words, n * sizeof tried[0]);
      for (std::size_t i = 0; i < n; ++i)
        if (tried[i] != test_sum(ranks.size(), i)) throw Error("a test sum is wrong");
    });
  if (!error.empty()) gpu.leave_ranks();
  return error;
}

}  // namespace cudp
