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

/// Result codes of NCCL (ncclResult_t) that this code distinguishes. Every other code is an error.
enum class NcclResult : int { success = 0, in_progress = 7 };
/// Identifier of a group of ranks (processes), with the same layout as NCCL's ncclUniqueId.
struct NcclId {
  std::array<char, 128> bytes;
};
/// Settings of a group of ranks (processes), with the same layout as ncclConfig_t of NCCL 2.14.
/// Later versions accept it.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;
};
struct NcclCommunicator;

/// The functions of the NCCL library that cudp calls. The constructor opens the library.
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
/// Returns the functions of the NCCL library. Throws Error if the library is not installed, or does
/// not have one of the functions.
const Nccl& nccl();

/// Returns NCCL's version as ncclGetVersion encodes it: 22809 is 2.28.9. Throws Error if NCCL is
/// not installed, lacks a function or is too old.
int nccl_version();
/// Returns the library's name with its version, e.g. "NCCL 2.28.9". version: as encoded by
/// ncclGetVersion.
std::string nccl_name(int version);
/// Returns whether several ranks (processes) may use the same device. NCCL allows it from version
/// 2.30 on, if the environment variable NCCL_MULTI_RANK_GPU_ENABLE is 1.
bool nccl_may_share(int version);

/// Waits until done() is true, by calling it at intervals. Throws Error with the line that
/// failure() returns, if that is not empty. Throws what ranks.check() throws if a rank has failed.
/// Throws Error if it takes longer than `limit`; the message contains `what`, the operation that is
/// waited for, and the option --rank-timeout.
void wait_watched(Ranks& ranks, const char* what, std::chrono::milliseconds limit,
                  const std::function<bool()>& done, const std::function<std::string()>& failure);

/// Membership of this rank (process) in the group of ranks over which NCCL adds up sums. None of
/// its functions waits for another rank longer than Ranks::timeout(). If a function fails, it first
/// ends NCCL's work on the device.
class NcclRanks {
 public:
  /// Creates the id of a new group of ranks. One rank calls it and sends the id to the others.
  /// Throws Error if NCCL fails.
  static std::string new_id();

  /// Joins the group of ranks with this id. All ranks must call it, after each has selected its
  /// CUDA device. Throws Error if not all of them join.
  NcclRanks(Ranks& ranks, const std::string& id);
  /// Leaves the group of ranks. Requires that all recorded CUDA graphs that call sum() have been
  /// destroyed.
  ~NcclRanks();
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  /// Replaces words [n] by their sums over all ranks, modulo 2^64. The sum is launched on a CUDA
  /// stream and may be recorded in a CUDA graph.
  void sum(std::uint64_t* words, std::size_t n, void* stream);
  /// Waits until done() returns true, by calling it at intervals. done: returns whether the device
  /// has finished its work. Throws Error if a rank has failed.
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
