#include "runtime/device/cuda/nccl.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace cudp::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUint64 = 5;  // ncclUint64
constexpr int kSum = 0;     // ncclSum

[[noreturn]] void fail(const char* what, NcclResult result, NcclCommunicator* of) {
  const char* const more = nccl().last_error(of);
  throw Error(fmt::format("NCCL: {}: {}{}{}", what, nccl().name(result),
                          more != nullptr && *more != '\0' ? ", " : "",
                          more != nullptr ? std::string_view(more) : std::string_view()));
}

}  // namespace

const Nccl& nccl() {
  static const Nccl functions;
  return functions;
}

int nccl_version() {
  int version = 0;
  if (const NcclResult r = nccl().get_version(&version); r != NcclResult::success)
    fail("its version", r, nullptr);
  if (version < 21400)
    throw Error("NCCL: expected 2.14 or later, found version " + std::to_string(version));
  return version;
}

std::string nccl_name(int version) {
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

bool nccl_may_share(int version) {
  const char* const enabled = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return version >= 23000 && enabled != nullptr && std::string_view(enabled) == "1";
}

void wait_watched(Ranks& ranks, const char* what, std::chrono::milliseconds limit,
                  const std::function<bool()>& done, const std::function<std::string()>& failure) {
  const Clock::time_point start = Clock::now();
  for (int polls = 0; !done(); ++polls) {
    if (polls < 1024)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (polls % 64 != 63) continue;
    if (const std::string line = failure(); !line.empty()) throw Error(line);
    ranks.check();
    if (Clock::now() - start > limit)
      throw Error(fmt::format("rank {}: NCCL did not end \"{}\" within {} s (--rank-timeout)",
                              ranks.rank(), what, std::chrono::duration<double>(limit).count()));
  }
}

std::string NcclRanks::new_id() {
  NcclId id{};
  if (const NcclResult r = nccl().make_id(&id); r != NcclResult::success)
    fail("make an id", r, nullptr);
  return {id.bytes.data(), id.bytes.size()};
}

NcclRanks::NcclRanks(Ranks& ranks, const std::string& id) : ranks_(ranks), nccl_(nccl()) {
  NcclId same{};
  ensure(id.size() == same.bytes.size(), "the size of NCCL's id");
  std::memcpy(same.bytes.data(), id.data(), id.size());
  NcclConfig config;
  const NcclResult r = nccl_.begin(&communicator_, ranks.size(), same, ranks.rank(), &config);
  // Waits for at most half of the timeout. A rank that has failed already waits for this rank in
  // first_error(). This rank must get there before that wait times out.
  settle(r, "bring the ranks together", ranks.timeout() / 2);
}

NcclRanks::~NcclRanks() {
  // Ends the communicator on this rank alone. ncclCommDestroy would wait for the other ranks.
  if (communicator_ != nullptr) (void)nccl_.abort(communicator_);
}

void NcclRanks::sum(std::uint64_t* words, std::size_t n, void* stream) {
  settle(nccl_.all_reduce(words, words, n, kUint64, kSum, communicator_, stream),
         "the sum of a step", ranks_.timeout());
}

void NcclRanks::wait(const std::function<bool()>& done) {
  try {
    wait_watched(ranks_, "the sum of a step", ranks_.timeout(), done, [this] { return failure(); });
  } catch (...) {
    abort_communicator();
    throw;
  }
}

std::string NcclRanks::failure() const {
  NcclResult state = NcclResult::success;
  const NcclResult asked = nccl_.state(communicator_, &state);
  if (asked != NcclResult::success) state = asked;
  if (state == NcclResult::success || state == NcclResult::in_progress) return "";
  try {
    fail("the sum of a step", state, communicator_);
  } catch (const Error& e) {
    return e.what();
  }
}

/// Waits until an NCCL call that returned `result` is complete, if it was still in progress. what:
/// name of the operation, for messages. Throws Error if the call failed, or is not complete after
/// the time `limit`.
void NcclRanks::settle(NcclResult result, const char* what, std::chrono::milliseconds limit) {
  try {
    if (result == NcclResult::in_progress)
      wait_watched(
          ranks_, what, limit,
          [&] {
            if (const NcclResult asked = nccl_.state(communicator_, &result);
                asked != NcclResult::success)
              result = asked;
            return result != NcclResult::in_progress;
          },
          [] { return std::string(); });
    if (result != NcclResult::success) fail(what, result, communicator_);
  } catch (...) {
    abort_communicator();
    throw;
  }
}

/// Aborts NCCL's work after a failure, so that its work on the device ends at once. NCCL's memory
/// must be kept until the last recorded CUDA graph that uses it has been destroyed; another thread
/// waits for that and then frees it.
void NcclRanks::abort_communicator() noexcept {
  NcclCommunicator* const of = std::exchange(communicator_, nullptr);
  if (of == nullptr) return;
  try {
    std::thread([abort = nccl_.abort, of] { (void)abort(of); }).detach();
  } catch (...) {
    (void)nccl_.abort(of);
  }
}

}  // namespace cudp::cuda
