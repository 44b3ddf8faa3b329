#pragma once
// NCCL, opened when it is first needed. The functions that are used are declared here, so a build
// needs no header of NCCL. A machine needs the library (libnccl.so.2, 2.14 or later) only if ranks
// train on CUDA.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/device/cuda/lazy_library.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp::cuda {

/// The values of ncclResult_t that the code distinguishes.
enum class NcclResult : int { success = 0, in_progress = 7 };
/// Identifier of a group of ranks, declared like NCCL's ncclUniqueId.
struct NcclId {
  std::array<char, 128> bytes;
};
/// Settings of a group of ranks. Declared like ncclConfig_t of NCCL 2.14; later ones accept it.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;
};
struct NcclCommunicator;

struct Nccl {
  LazyLibrary library{"libnccl.so.2"};
  NcclResult (*get_version)(int* version) = library.find("ncclGetVersion");
  NcclResult (*make_id)(NcclId* id) = library.find("ncclGetUniqueId");
  NcclResult (*begin)(NcclCommunicator** made, int ranks, NcclId id, int rank,
                      NcclConfig* config) = library.find("ncclCommInitRankConfig");
  NcclResult (*all_reduce)(const void* from, void* to, std::size_t count, int type, int operation,
                           NcclCommunicator* of, void* stream) = library.find("ncclAllReduce");
  NcclResult (*state)(NcclCommunicator* of,
                      NcclResult* result) = library.find("ncclCommGetAsyncError");
  NcclResult (*abort)(NcclCommunicator* of) = library.find("ncclCommAbort");
  const char* (*name)(NcclResult result) = library.find("ncclGetErrorString");
  const char* (*last_error)(NcclCommunicator* of) = library.find("ncclGetLastError");
};
/// Returns the functions of NCCL. Throws Error if the library is not installed or lacks one.
const Nccl& nccl();

/// Returns the version as ncclGetVersion encodes it: 22809 is 2.28.9. Throws what nccl() throws, or
/// Error if the version is too old.
int nccl_version();
/// Returns the name with the version: "NCCL 2.28.9".
std::string nccl_name(int version);
/// Returns whether several ranks may use one device: from version 2.30 on, if
/// NCCL_MULTI_RANK_GPU_ENABLE allows it.
bool nccl_may_share(int version);

/// Waits until done() is true, polling at intervals. Throws Error with the line that failure()
/// returns, if any. Throws what ranks.check() throws. After `limit`, throws Error that names `what`
/// and --rank-timeout.
void wait_watched(Ranks& ranks, const char* what, std::chrono::milliseconds limit,
                  const std::function<bool()>& done, const std::function<std::string()>& failure);

/// Membership of this rank (process) in the group of ranks whose sums NCCL adds up. None of its
/// calls waits for another rank longer than Ranks::timeout(). If a call fails, it first ends NCCL's
/// work on the device.
class NcclRanks {
 public:
  /// Creates the id of a new group. One rank calls it, for all. Throws Error if that fails.
  static std::string new_id();

  /// Joins the group. All ranks call it, each with its device chosen. Throws Error if the ranks do
  /// not all join.
  NcclRanks(Ranks& ranks, const std::string& id);
  /// Requires that all recorded CUDA graphs with sums over these ranks have been destroyed.
  ~NcclRanks();
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  /// Replaces words [n] by their sums over all ranks, modulo 2^64, on a CUDA stream. It may be
  /// recorded in a CUDA graph.
  void sum(std::uint64_t* words, std::size_t n, void* stream);
  /// Waits until done() returns true, polling it. done: returns whether the device has finished its
  /// work. Throws Error if a rank has failed.
  void wait(const std::function<bool()>& done);

 private:
  std::string failure() const;
  void settle(NcclResult result, const char* what, std::chrono::milliseconds limit);
  void abort_communicator() noexcept;

  Ranks& ranks_;
  const Nccl& nccl_;
  NcclCommunicator* communicator_ = nullptr;
};

}  // namespace cudp::cuda
