#pragma once
// Agreement among the ranks (processes) on whether their devices add the sums of a step directly.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// Properties of a rank's device. The ranks (processes) exchange them to decide whether their
/// devices can add up sums directly, without the host.
struct DeviceSums {
  std::string refusal{};  ///< reason why the device cannot add sums; empty if it can
  /// Name and version of the library that would add up the sums, e.g. "NCCL 2.28.9". It must be the
  /// same on all ranks.
  std::string library{};
  std::string device{};    ///< identifier, unique among all devices of all ranks
  bool may_share = false;  ///< several ranks may use this device
};

/// Returns the reason why the devices of the ranks (processes) cannot add up sums directly; empty
/// if they can. All ranks get the same text: the reason of the first rank that has one. mine:
/// properties of this rank's device.
std::string why_not_on_devices(Ranks& ranks, const DeviceSums& mine);

/// Exchanges error messages between the ranks (processes). Returns the message of the first rank
/// that has one, with that rank's number; empty if none has. what: name of this exchange in error
/// messages. mine: error message of this rank, or empty.
std::string first_error(Ranks& ranks, const char* what, const std::string& mine);

/// Returns the i-th word of a rank's test data. The ranks (processes) add up such data, to check
/// that sums over ranks are computed correctly.
std::uint64_t test_word(int rank, std::size_t i);
/// Returns the i-th word of the correct sum of the test data of ranks 0 .. ranks - 1.
std::uint64_t test_sum(int ranks, std::size_t i);

/// Connects the devices of all ranks (processes), and tests the connection with a sum of n words
/// over all ranks. words: device memory for the test, [n]; set to 0 afterwards. Returns "" on
/// success, otherwise the reason for the failure, which is the same line on all ranks.
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
