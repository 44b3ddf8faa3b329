#pragma once
#include <filesystem>
#include <string>

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
    wait_until(reached);
  }

  /// Starts a run and sends it the signal when it has a checkpoint at this step or a later one. On
  /// a loaded machine the run may be complete before the signal arrives: then starts it again.
  /// Returns how the run ended.
  Finished signal_at(const Arguments& run, const std::string& out, int step, int signal) const {
    for (int attempt = 0; attempt < 10; ++attempt) {
      CudpProcess process(folder_, run);
      wait_for_step(out, step);
      process.signal(signal);
      const Finished f = process.wait();
      if (!std::filesystem::exists(folder_ / (out + "/private/result.json"))) return f;
      std::filesystem::remove_all(folder_ / out);
    }
    ADD_FAILURE() << "the run was always complete before the signal arrived";
    return {};
  }

  /// Starts a run and kills it when it has a checkpoint at this step or a later one.
  void interrupt_at(const std::string& out, int step) const {
    ASSERT_EQ(signal_at(training(out), out, step, SIGKILL).exit, -1);
    ASSERT_TRUE(std::filesystem::exists(folder_ / (out + "/private/key")));
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

}  // namespace cudp
