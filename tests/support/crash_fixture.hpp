#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "privacy/ledger.hpp"
#include "runtime/run/authenticator.hpp"
#include "tests/support/table_training.hpp"

namespace cudp {

inline constexpr int kCrashSteps = 150;

/// Fixture for tests that kill a run on a small table at various moments.
class CliCrash : public testing::Test {
 protected:
  /// Returns the command line of a training with short steps and so many checkpoints that one is
  /// nearly always being written.
  Arguments training(const std::string& out) const {
    return with(with(train_on(table_, folder_ / out),
                     args("--size-is-public --model mlp --epsilon 3 --batch 256 --optimizer adam "
                          "--lr 0.01 --ema 0.9 --checkpoint-every 10 --device cpu "
                          "--accountant rdp")),
                {"--steps", std::to_string(kCrashSteps)});
  }
  /// Returns the command line of a training of a recurrent network on the built-in sentences.
  Arguments training_on_texts(const std::string& out) const {
    return with(args("train --preset sentences-lstm --size-is-public --seed 11 --batch 256 "
                     "--steps 60 --ema 0.9 --threads 1 --device cpu --quiet --json "
                     "--checkpoint-every 5"),
                {"--out", folder_ / out});
  }
  Finished resume(const std::string& out) const {
    return run_cudp(folder_, {"train", "--resume", folder_ / out, "--quiet", "--json"});
  }
  Finished resume_with_fresh_noise(const std::string& out) const {
    return run_cudp(folder_,
                    {"train", "--resume", folder_ / out, "--fresh-noise", "--quiet", "--json"});
  }
  privacy::Ledger ledger_of(const std::string& out) const {
    const std::string path = folder_ / (out + "/private/ledger");
    return privacy::Ledger::from_text(read_authenticated(path).content, path);
  }
  std::string file(const std::string& name) const { return content_of(folder_ / name); }

  /// Waits until a run has a checkpoint at this step or a later one, or is complete.
  void wait_for_step(const std::string& out, int step) const {
    const auto reached = [&] {
      std::error_code error;
      for (const auto& entry :
           std::filesystem::directory_iterator(folder_ / (out + "/private"), error)) {
        const std::string name = entry.path().filename().string();
        if (name == "result.json") return true;
        if (name.starts_with("checkpoint-") && std::stoi(name.substr(11)) >= step) return true;
      }
      return false;
    };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!reached() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::microseconds(300));
  }

  /// Starts a run and kills it when it has a checkpoint at this step or a later one.
  void interrupt_at(const std::string& out, int step) const {
    CudpProcess process(folder_, training(out));
    wait_for_step(out, step);
    process.signal(SIGKILL);
    ASSERT_EQ(process.wait().exit, -1);
    ASSERT_TRUE(std::filesystem::exists(folder_ / (out + "/private/key")));
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

}  // namespace cudp
