#include "runtime/ranks/launch.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/interrupt.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/ranks/shared.hpp"

namespace cudp {
namespace {

/// A child process that runs one of the other ranks.
struct Child {
  ::pid_t process;
  int rank;
  bool gone = false;
};

std::string ending_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

/// The Ranks object of rank 0, if all ranks are processes of one node. Rank 0 has started the
/// processes of the other ranks, and waits until they have ended.
class ForkedRanks final : public Ranks {
 public:
  ForkedRanks(int n, std::chrono::milliseconds timeout)
      : board_(n), mine_(board_, 0, timeout, [this] { look_for_lost(); }) {}

  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;
  ForkedRanks(ForkedRanks&&) = delete;
  ForkedRanks& operator=(ForkedRanks&&) = delete;
  ~ForkedRanks() override {
    // The processes of the other ranks end by themselves after the training. Those that still run
    // after kPatience are killed.
    constexpr auto kPatience = std::chrono::seconds(10);
    const auto start = std::chrono::steady_clock::now();
    while (is_one_left()) {
      if (std::chrono::steady_clock::now() - start > kPatience) {
        for (const Child& c : children_)
          if (!c.gone) ::kill(c.process, SIGKILL);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void start(const std::function<Exit(Ranks&)>& follow, std::chrono::milliseconds timeout) {
    const ::pid_t parent = ::getpid();
    for (int r = 1; r < board_.ranks(); ++r) {
      const ::pid_t process = ::fork();
      if (process < 0) {
        const int reason = errno;
        board_.end("a process was missing", Exit::failure);
        throw Error(fmt::format("--ranks: no process for rank {}: {}", r, std::strerror(reason)));
      }
      if (process == 0) be_rank(r, parent, follow, timeout);
      children_.push_back({process, r});
    }
    share_cores(board_.ranks());
  }

  int rank() const override { return 0; }
  int size() const override { return board_.ranks(); }
  int local_rank() const override { return 0; }
  int local_size() const override { return size(); }
  std::string transport() const override { return mine_.transport(); }
  void sum(const char* what, std::span<std::int64_t> numbers) override { mine_.sum(what, numbers); }
  void broadcast(const char* what, std::span<std::byte> bytes, Patience patience) override {
    mine_.broadcast(what, bytes, patience);
  }
  std::vector<std::string> gather(const char* what, std::span<const std::byte> mine) override {
    return mine_.gather(what, mine);
  }
  void check() override { mine_.check(); }
  std::chrono::milliseconds timeout() const override { return mine_.timeout(); }
  void abort(const std::string& why, Exit code) noexcept override { board_.end(why, code); }

 private:
  [[noreturn]] void be_rank(int rank, ::pid_t parent, const std::function<Exit(Ranks&)>& follow,
                            std::chrono::milliseconds timeout) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(static_cast<int>(Exit::failure));
    ignore_signals();
    share_cores(board_.ranks());
    Exit code = Exit::failure;
    SharedRanks ranks(board_, rank, timeout);
    try {
      code = follow(ranks);
    } catch (const RanksError& e) {
      code = e.code();
    } catch (const Error& e) {
      code = e.code();
      board_.end(fmt::format("rank {}: {}", rank, e.what()), code);
    } catch (const std::exception& e) {
      board_.end(fmt::format("rank {}: {}", rank, e.what()), code);
    }
    ::_exit(static_cast<int>(code));
  }

  /// Returns whether any child process still runs. Sets `gone` of those that have ended.
  bool is_one_left() {
    bool left = false;
    for (Child& c : children_) {
      if (!c.gone) c.gone = ::waitpid(c.process, nullptr, WNOHANG) == c.process;
      left = left || !c.gone;
    }
    return left;
  }

  void look_for_lost() {
    for (Child& c : children_) {
      int status = 0;
      if (c.gone || ::waitpid(c.process, &status, WNOHANG) != c.process) continue;
      c.gone = true;
      board_.end(fmt::format("rank {} {}", c.rank, ending_of(status)), Exit::failure);
    }
  }

  SharedBoard board_;
  SharedRanks mine_;
  std::vector<Child> children_;
};

}  // namespace

std::unique_ptr<Ranks> fork_ranks(int n, std::chrono::milliseconds timeout,
                                  const std::function<Exit(Ranks&)>& follow) {
  auto ranks = std::make_unique<ForkedRanks>(n, timeout);
  ranks->start(follow, timeout);
  return ranks;
}

}  // namespace cudp
