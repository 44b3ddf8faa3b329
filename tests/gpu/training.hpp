#pragma once
// The program that the tests are in, as `cudp`: a training that a test starts has a process of its
// own, which no device has been used in.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cli/commands.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/transcript.hpp"
#include "tests/support/replayed_run.hpp"

namespace cudp {

inline constexpr const char* kAsCudp = "--as-cudp";
inline constexpr unsigned kTrainingSeed = 7;

/// The CPU's engines where CUDA is asked for, with the sensitivity that CUDA's have: what such a
/// training releases differs from a device's by nothing but rounding before the noise. Features
/// that it keeps are the device's too, which would take minutes to make them where it is
/// interpreted.
inline const Backend& cpu_as_cuda() {
  static const Backend backend = [] {
    Backend b = choose_backend(Device::cpu);
    b.name = "cuda";
    b.arithmetic_name = choose_backend(Device::cuda).arithmetic_name;
    b.arithmetic = [](const Network&) { return kCudaArithmetic; };
    return b;
  }();
  return backend;
}

/// How a test's training is watched: it appends to a transcript, if one is named, and is killed
/// when the n-th step is released (0: not at all).
struct Watching {
  std::string transcript;
  std::size_t killed_at = 0;
  bool on_cpu = false;  ///< cpu_as_cuda()
};

/// Runs `cudp WORDS` in a folder, in a process of its own.
inline Ended run_as_cudp(const std::filesystem::path& folder, const std::vector<std::string>& words,
                         const Watching& watching = {}) {
  std::vector<std::string> all = {"cudp", kAsCudp, watching.transcript,
                                  std::to_string(watching.killed_at),
                                  watching.on_cpu ? "cpu" : "device"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string out = folder / "stdout";
  const std::string err = folder / "stderr";
  const pid_t child = ::fork();
  if (child == 0) {
    for (const auto& [path, to] : {std::pair{out, STDOUT_FILENO}, std::pair{err, STDERR_FILENO}}) {
      const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (file < 0 || ::dup2(file, to) < 0) ::_exit(98);
    }
    if (::chdir(folder.c_str()) != 0) ::_exit(98);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(98);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), content_of(out),
          content_of(err)};
}

/// A transcript that ends its process at the n-th step that is released.
class EndingTranscript : public Transcript {
 public:
  EndingTranscript(const SeededKey& proof, int file, std::size_t at)
      : Transcript(proof, file), at_(at) {}

  void on_release(const ReleasedValue& what, std::span<std::byte> values) override {
    Transcript::on_release(what, values);
    if (what.purpose == Stream::noise && ++steps_ == at_) ::raise(SIGKILL);
  }

 private:
  std::size_t at_;
  std::size_t steps_ = 0;
};

/// What main() is to do with such words.
inline bool is_as_cudp(int argc, char** argv) {
  return argc > 4 && std::string_view(argv[1]) == kAsCudp;
}
inline int main_as_cudp(int argc, char** argv) {
  const std::string transcript = argv[2];
  std::optional<EndingTranscript> release_observer;
  if (!transcript.empty()) {
    TrainConfig seeded;
    seeded.seed = kTrainingSeed;
    const int file = ::open(transcript.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0) return 98;
    release_observer.emplace(SeededKey(seeded), file, std::strtoull(argv[3], nullptr, 10));
  }
  if (std::string_view(argv[4]) == "cpu") replace_cuda(&cpu_as_cuda());
  std::vector<char*> words = {argv[0]};
  words.insert(words.end(), argv + 5, argv + argc);
  return run_command_line(static_cast<int>(words.size()), words.data(),
                          release_observer ? &*release_observer : nullptr);
}

}  // namespace cudp
