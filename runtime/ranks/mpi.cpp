#include "runtime/ranks/mpi.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <thread>

#include <sched.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "runtime/base/threads.hpp"
#include "runtime/ranks/launcher.hpp"
#include "runtime/ranks/mpi_library.hpp"

namespace cudp {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxAtOnce = std::size_t{1} << 28;  // numbers or bytes per call
constexpr int kWaiting = 7;  // tag of a message to rank 0 from a rank that waits
/// Time for which rank 0 collects the messages of waiting ranks (name_missing_ranks()).
constexpr auto kReportTime = std::chrono::seconds(2);

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// Returns the FNV-1a hash of a text.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

/// Ranks that are the processes of an MPI job. Abi: constants and types of the MPI library's binary
/// interface.
template <class Abi>
class MpiRanks final : public Ranks {
 public:
  using Handle = typename Abi::Handle;
  /// Joins the ranks of the job. Requires that MPI has been initialised. timeout: how long a rank
  /// waits for another one.
  MpiRanks(const MpiFunctions<Abi>& mpi, std::chrono::milliseconds timeout)
      : mpi_(mpi), timeout_(timeout) {
    mpi_.comm_rank(mpi_.world, &rank_);
    mpi_.comm_size(mpi_.world, &size_);
    Handle node = mpi_.no_communicator;
    mpi_.comm_split_type(mpi_.world, Abi::kSharedMemory, rank_, mpi_.no_info, &node);
    mpi_.comm_rank(node, &local_rank_);
    mpi_.comm_size(node, &local_size_);
    share_cores(sharers(node));
    mpi_.comm_free(&node);
  }
  ~MpiRanks() override { mpi_.finalize(); }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;
  MpiRanks(MpiRanks&&) = delete;
  MpiRanks& operator=(MpiRanks&&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }
  std::string transport() const override { return mpi_library(); }

  void sum(const char* what, std::span<std::int64_t> numbers) override {
    check_call("sum", what, numbers.size(), Patience::limited);
    for (std::size_t at = 0; at < numbers.size(); at += kMaxAtOnce) {
      const std::size_t n = std::min(kMaxAtOnce, numbers.size() - at);
      Handle request = mpi_.no_request;
      // The type is unsigned, so that sums wrap around (modulo 2^64).
      mpi_.iallreduce(mpi_.in_place(), numbers.data() + at, static_cast<int>(n), mpi_.uint64,
                      mpi_.sum, mpi_.world, &request);
      wait(request, what, Patience::limited);
    }
  }

  void broadcast(const char* what, std::span<std::byte> bytes, Patience patience) override {
    check_call("broadcast", what, bytes.size(), patience);
    for (std::size_t at = 0; at < bytes.size(); at += kMaxAtOnce) {
      const std::size_t n = std::min(kMaxAtOnce, bytes.size() - at);
      Handle request = mpi_.no_request;
      mpi_.ibcast(bytes.data() + at, static_cast<int>(n), mpi_.byte, 0, mpi_.world, &request);
      wait(request, what, Patience::limited);
    }
  }

  std::vector<std::string> gather(const char* what, std::span<const std::byte> mine) override {
    check_call("gather", what, 0, Patience::limited);
    const auto ranks = static_cast<std::size_t>(size_);
    std::uint64_t bytes = mine.size();
    std::vector<std::uint64_t> sizes(ranks);
    Handle request = mpi_.no_request;
    mpi_.iallgather(&bytes, 1, mpi_.uint64, sizes.data(), 1, mpi_.uint64, mpi_.world, &request);
    wait(request, what, Patience::limited);
    std::vector<std::string> all(leads() ? ranks : 0);
    const std::size_t part_size = kMaxAtOnce / ranks;
    const auto part = [&](std::uint64_t whole, std::uint64_t at) {
      return at < whole ? std::min<std::uint64_t>(part_size, whole - at) : 0;
    };
    for (std::uint64_t at = 0; at < std::ranges::max(sizes); at += part_size) {
      std::vector<int> counts, offsets;
      int end = 0;
      for (const std::uint64_t whole : sizes) {
        counts.push_back(static_cast<int>(part(whole, at)));
        offsets.push_back(end);
        end += counts.back();
      }
      std::string together(leads() ? static_cast<std::size_t>(end) : 0, '\0');
      mpi_.igatherv(mine.data() + std::min<std::uint64_t>(at, mine.size()),
                    counts[static_cast<std::size_t>(rank_)], mpi_.byte, together.data(),
                    counts.data(), offsets.data(), mpi_.byte, 0, mpi_.world, &request);
      wait(request, what, Patience::limited);
      for (std::size_t r = 0; r < all.size(); ++r)
        all[r].append(together, static_cast<std::size_t>(offsets[r]),
                      static_cast<std::size_t>(counts[r]));
    }
    return all;
  }

  std::chrono::milliseconds timeout() const override { return timeout_; }

  /// Prints `why`, the reason, and ends the processes of all ranks with this exit code.
  void abort(const std::string& why, Exit code) noexcept override {
    // The other ranks wait before they print. Meanwhile rank 0 prints the error, if it occurs on
    // all ranks, and ends their processes, so that the message appears only once.
    if (!leads()) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    try {
      // One write, so that nothing that mpirun prints stands within the line.
      const std::string from = leads() ? "" : fmt::format("rank {} on {}: ", rank_, host_name());
      std::cerr << "cudp: " + from + why + "\n" << std::flush;
    } catch (...) {  // there is no other way to report an error
    }
    mpi_.abort(mpi_.world, static_cast<int>(code));
    ::_exit(static_cast<int>(code));
  }

 private:
  /// Returns the number of ranks on this node, this one included, whose processes may run on
  /// exactly the same cores as this one.
  int sharers(Handle node) {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    (void)sched_getaffinity(0, sizeof mine, &mine);
    int ranks = 1;
    mpi_.comm_size(node, &ranks);
    std::vector<cpu_set_t> all(static_cast<std::size_t>(ranks));
    mpi_.allgather(&mine, sizeof mine, mpi_.byte, all.data(), sizeof mine, mpi_.byte, node);
    return static_cast<int>(
        std::ranges::count_if(all, [&](const cpu_set_t& s) { return CPU_EQUAL(&s, &mine); }));
  }

  /// Checks that all ranks have made the same call, by comparing a hash of the call and its size;
  /// throws Error if they differ.
  void check_call(const char* function, const char* what, std::uint64_t count, Patience patience) {
    const std::uint64_t called = hash_of(std::string(function) + ": " + what);
    std::array<std::uint64_t, 4> notes = {called, ~called, count, ~count};
    Handle request = mpi_.no_request;
    mpi_.iallreduce(mpi_.in_place(), notes.data(), static_cast<int>(notes.size()), mpi_.uint64,
                    mpi_.min, mpi_.world, &request);
    wait(request, what, patience);
    if (notes[0] != ~notes[1] || notes[2] != ~notes[3])
      throw Error(fmt::format("ranks have made different calls, one of them \"{}\"", what));
  }

  void wait(Handle& request, const char* what, Patience patience) {
    const Clock::time_point start = Clock::now();
    for (int polls = 0;; ++polls) {
      int done = 0;
      mpi_.test(&request, &done, mpi_.no_status());
      if (done != 0) return;
      if (polls < 4096)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      if (polls % 256 == 0 && patience == Patience::limited && Clock::now() - start > timeout_)
        name_missing_ranks(what);
    }
  }

  /// Throws RanksError with the numbers of the ranks that have not made the call `what`. To find
  /// them, the ranks that have made it send a message to rank 0; all others are missing.
  [[noreturn]] void name_missing_ranks(const char* what) {
    if (!leads()) {
      Handle request = mpi_.no_request;
      mpi_.isend(&rank_, 1, mpi_.integer, 0, kWaiting, mpi_.world, &request);
      std::this_thread::sleep_for(2 * kReportTime);
      throw RanksError(fmt::format("rank 0 did not come to \"{}\" within {} s (--rank-timeout)",
                                   what, std::chrono::duration<double>(timeout_).count()));
    }
    std::vector<bool> waits(static_cast<std::size_t>(size_));
    waits[0] = true;
    for (const Clock::time_point start = Clock::now(); Clock::now() - start < kReportTime;) {
      int is_there = 0;
      typename MpiFunctions<Abi>::Status status;
      mpi_.iprobe(Abi::kAnySource, kWaiting, mpi_.world, &is_there, &status);
      if (is_there == 0) continue;
      int from = 0;
      mpi_.recv(&from, 1, mpi_.integer, status.source, kWaiting, mpi_.world, &status);
      waits[static_cast<std::size_t>(from)] = true;
    }
    std::string missing;
    for (std::size_t r = 0; r < waits.size(); ++r)
      if (!waits[r]) missing += (missing.empty() ? "rank " : ", ") + std::to_string(r);
    throw RanksError(fmt::format("{} did not come to \"{}\" within {} s (--rank-timeout)",
                                 missing.empty() ? "a rank" : missing, what,
                                 std::chrono::duration<double>(timeout_).count()));
  }

  MpiFunctions<Abi> mpi_;
  std::chrono::milliseconds timeout_;
  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
};

/// Returns an object for the ranks of MPI_COMM_WORLD; null if this process is the only one in it.
template <class Abi>
std::unique_ptr<Ranks> ranks_of(const LazyLibrary& library, std::chrono::milliseconds timeout) {
  const MpiFunctions<Abi> mpi(library);
  int provided = 0;
  mpi.init_thread(nullptr, nullptr, mpi.kFunneled, &provided);
  int size = 1;
  mpi.comm_size(mpi.world, &size);
  if (size > 1) return std::make_unique<MpiRanks<Abi>>(mpi, timeout);
  mpi.finalize();
  return nullptr;
}

}  // namespace

std::unique_ptr<Ranks> mpi_ranks(std::chrono::milliseconds timeout) {
  const Launched all = launched();
  if (all.processes == 1) return nullptr;
  if (has_rank_of_launcher()) {
    const FoundMpi& found = found_mpi();
    if (found.library == nullptr)
      throw InputError(fmt::format(
          "{}: expected one process, or an MPI library, found {} processes, each of which would "
          "release for itself; install Open MPI or MPICH, or name the library in CUDP_MPI_LIBRARY; "
          "on one node, --ranks {} needs none ({})",
          all.variable, all.processes, all.processes, found.missing));
    std::unique_ptr<Ranks> ranks = found.is_open_mpi ? ranks_of<OpenMpi>(*found.library, timeout)
                                                     : ranks_of<Mpich>(*found.library, timeout);
    if (ranks != nullptr) return ranks;
  }
  throw InputError(fmt::format(
      "{}: expected processes that know of each other, found {} that do not, each of which would "
      "release for itself; start them with mpirun, or srun --mpi=pmix",
      all.variable, all.processes));
}

std::string mpi_library() {
  const FoundMpi& found = found_mpi();
  return found.library == nullptr ? "" : "MPI: " + found.version;
}

}  // namespace cudp
