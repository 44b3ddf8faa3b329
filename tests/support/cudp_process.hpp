#pragma once
// Runs the built program as a user does.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/arguments.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_files.hpp"
#include "tests/support/wait_until.hpp"

namespace cudp {

struct Finished {
  int exit = -1;  ///< -1 if a signal ended it
  std::string out;
  std::string err;
};

/// While this object lives, gnuplot is the tests' (tests/support/gnuplot), and the scripts that are
/// passed to it are kept.
class DrawnPictures {
 public:
  explicit DrawnPictures(std::string folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    ::setenv("CUDP_DRAWN", folder_.c_str(), 1);
    const std::string gnuplot = golden_file("").parent_path().parent_path() / "support/gnuplot";
    ::setenv("PATH", (gnuplot + ":" + path_).c_str(), 1);
  }
  ~DrawnPictures() {
    ::unsetenv("CUDP_DRAWN");
    ::setenv("PATH", path_.c_str(), 1);
  }
  DrawnPictures(const DrawnPictures&) = delete;
  DrawnPictures& operator=(const DrawnPictures&) = delete;

  /// Returns the script of the picture with this name.
  std::string script(const std::string& picture) const {
    return content_of(folder_ + "/" + picture);
  }

 private:
  std::string folder_;
  std::string path_ = std::getenv("PATH");
};

/// Returns whether the process has a handler for the signal.
inline bool hears(pid_t process, int signal) {
  const std::string status = content_of("/proc/" + std::to_string(process) + "/status");
  const std::size_t at = status.find("SigCgt:");
  if (at == std::string::npos) return false;
  return ((std::stoull(status.substr(at + 7), nullptr, 16) >> (signal - 1)) & 1) != 0;
}

/// A cudp process with its output in files of `folder`.
class CudpProcess {
 public:
  /// Starts the process. directory: its working directory; empty for that of the tests.
  CudpProcess(const TemporaryFolder& folder, const std::vector<std::string>& arguments,
              const std::string& directory = "")
      : out_(folder / "stdout"), err_(folder / "stderr") {
    std::vector<char*> argv = {const_cast<char*>(cudp_binary())};
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    child_ = ::fork();
    if (child_ != 0) return;
    const auto redirect = [](const std::string& path, int to) {
      const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (file < 0 || ::dup2(file, to) < 0) ::_exit(126);
    };
    redirect(out_, STDOUT_FILENO);
    redirect(err_, STDERR_FILENO);
    if (!directory.empty() && ::chdir(directory.c_str()) != 0) ::_exit(125);
    ::execv(cudp_binary(), argv.data());
    ::_exit(127);
  }

  pid_t id() const { return child_; }
  void signal(int number) const { ::kill(child_, number); }

  /// Returns whether the process has ended.
  bool has_ended() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == child_;
  }

  /// Waits until the process handles the signal or has ended.
  void wait_for_handler(int number) const {
    wait_until([&] { return hears(child_, number) || has_ended(); });
  }

  Finished wait() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(out_), content_of(err_)};
  }

 private:
  std::string out_;
  std::string err_;
  pid_t child_ = -1;
};

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Returns the checkpoint with the most steps in a run's folder; an empty path if there is none.
inline std::filesystem::path newest_checkpoint_file(const std::filesystem::path& run) {
  std::error_code none;
  std::filesystem::path newest;
  int most = -1;
  for (const auto& entry : std::filesystem::directory_iterator(run / "private", none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("checkpoint-") || std::stoi(name.substr(11)) <= most) continue;
    most = std::stoi(name.substr(11));
    newest = entry.path();
  }
  return newest;
}

/// Turns one bit in the middle of a file.
inline void damage(const std::filesystem::path& file) {
  std::string bytes = content_of(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_text(file, bytes);
}

inline Finished run_cudp(const TemporaryFolder& folder, const std::vector<std::string>& arguments) {
  return CudpProcess(folder, arguments).wait();
}

/// Result of a program that ran on a terminal.
struct OnTerminal {
  int exit = -1;
  std::string out;       ///< stdout, if it went to a file; else empty
  std::string terminal;  ///< text written on the terminal
};

/// Runs a program on a terminal of its own. words: path of the program, then its arguments.
/// stdout_file: file for its stdout; "" for the terminal. columns: width of the terminal; 0 if
/// unknown.
inline OnTerminal run_on_terminal(const std::vector<std::string>& words,
                                  const std::string& stdout_file = "", unsigned short columns = 0) {
  winsize size{.ws_row = 40, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, columns > 0 ? &size : nullptr);
  if (child == 0) {
    if (!stdout_file.empty()) {
      const int file = ::open(stdout_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (file < 0 || ::dup2(file, STDOUT_FILENO) < 0) ::_exit(126);
    }
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execv(argv.front(), argv.data());
    ::_exit(127);
  }
  OnTerminal t;
  char bytes[4096];
  for (;;) {
    const ssize_t n = ::read(terminal, bytes, sizeof bytes);
    if (n <= 0) break;  // EIO: the program has ended
    t.terminal.append(bytes, static_cast<std::size_t>(n));
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  t.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (!stdout_file.empty()) t.out = content_of(stdout_file);
  return t;
}

/// Runs cudp with stderr on a terminal and stdout in a file.
inline OnTerminal run_on_terminal(const TemporaryFolder& folder,
                                  const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {cudp_binary()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_on_terminal(words, folder / "stdout");
}

/// Paths of a small table with two classes that are mostly separated by a line, of its schema, and
/// of a test table.
struct SmallTable {
  std::string table;
  std::string schema;
  std::string test;
};

inline SmallTable write_small_table(const TemporaryFolder& folder, int rows = 613) {
  SmallTable t{folder / "small.csv", folder / "schema.toml", folder / "test.csv"};
  std::uint32_t state = 12345;
  const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 16; };
  const auto table = [&](int count) {
    std::string csv = "x,y,colour,class\n";
    for (int i = 0; i < count; ++i) {
      const int x = static_cast<int>(next() % 100);
      const int y = static_cast<int>(next() % 100);
      const bool yes = x + y + static_cast<int>(next() % 30) > 115;
      csv += std::to_string(x) + "," + std::to_string(y) + "," + (x % 3 == 0 ? "red" : "blue") +
             "," + (yes ? "yes" : "no") + "\n";
    }
    return csv;
  };
  write_text(t.table, table(rows));
  write_text(t.test, table(200));
  write_text(t.schema, R"(name = "small"
columns = [
  {name = "x", kind = "numeric", min = 0, max = 100},
  {name = "y", kind = "numeric", min = 0, max = 100},
  {name = "colour", kind = "categorical", values = ["red", "blue"]},
  {name = "class", kind = "label", values = ["no", "yes"]},
]
)");
  return t;
}

}  // namespace cudp
