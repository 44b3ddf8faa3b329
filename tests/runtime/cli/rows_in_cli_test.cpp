// `--rows-in`: the same bits from memory and from files, runs that go on either way, files that are
// cut short, and the memory that is taken.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/patients.hpp"
#include "tests/support/small_data.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

class RowsInCli : public testing::Test {
 protected:
  RowsInCli() {
    std::mt19937_64 random(4);
    const auto images = [&](const std::string& part, std::size_t count) {
      std::string pixels, labels;
      for (std::size_t i = 0; i < count; ++i) {
        labels += static_cast<char>(random() % 10);
        for (int p = 0; p < 784; ++p) pixels += static_cast<char>(random());
      }
      small_data::write_grey_images(folder_.path() / "images", part, pixels, labels);
    };
    images("train", 300);
    images("t10k", 50);
    write_text(folder_ / "patients.csv", patients(2'000, 1));
    write_text(folder_ / "test.csv", patients(300, 2));
    write_text(folder_ / "patients.toml", kPatientsSchema);
    std::string notes = "note,class\n";
    for (int i = 0; i < 500; ++i) notes += small_data::note_of(random, 12) + "\n";
    write_text(folder_ / "notes.csv", notes);
    write_text(folder_ / "notes.toml",
               "columns = [{name = \"note\", kind = \"text\"}, "
               "{name = \"class\", kind = \"label\", values = [\"no\", \"yes\"]}]\n");
    std::string words;
    for (const char* word : small_data::kWords) words += std::string(word) + "\n";
    write_text(folder_ / "words.txt", words);
    std::vector<float> x(std::size_t{700} * 5);
    std::vector<std::int64_t> y(700);
    for (float& v : x) v = static_cast<float>(random() % 1000) / 500.0f - 1.0f;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i * 5] > 0.0f ? 1 : 0;
    write_text(folder_ / "x.npy", npy_floats(700, x));
    write_text(folder_ / "y.npy", npy_labels(y));
  }

  Arguments training(const std::string& out, const std::string& more) const {
    return with({"train", "--delta", "1e-3", "--seed", "3", "--batch", "40", "--quiet", "--device",
                 "cpu", "--out", folder_ / out},
                args(more));
  }
  /// The files of release/, the exact metrics, and the model.
  std::map<std::string, std::string> made(const std::string& run) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_.path() / run / "release"))
      if (entry.path().extension() != ".png")
        files[entry.path().filename()] = content_of(entry.path());
    const fs::path own = folder_.path() / run / "private";
    files["metrics"] = content_of(own / "metrics.jsonl");
    // The model of a run without privacy.
    if (fs::exists(own / "model.safetensors"))
      files["model"] = content_of(own / "model.safetensors");
    return files;
  }

  TemporaryFolder folder_;
};

TEST_F(RowsInCli, TheSameBitsComeFromMemoryAndFromFiles) {
  const std::string at = folder_.path().string() + "/";
  const std::string table = "--dataset " + at + "patients.csv --schema " + at + "patients.toml ";
  const std::string ways[] = {
      table + "--test-data " + at + "test.csv --epsilon 3 --steps 30",
      table +
          "--model mlp --epsilon 3 --steps 30 --holdout 0.2 --holdout-epsilon 1 "
          "--holdout-delta 1e-3",
      table + "--method dpis --epsilon 3 --epochs 1",
      table + "--method adp-sgd --epsilon 3 --steps 20",
      table + "--method sgd --steps 20",
      "--dataset " + at + "images --model cnn --epsilon 3 --steps 8",
      "--dataset " + at + "images --model logistic --epsilon 3 --steps 20",
      "--dataset " + at + "x.npy --labels " + at + "y.npy --classes 2 --epsilon 3 --steps 30",
      "--dataset " + at + "notes.csv --schema " + at + "notes.toml --vocabulary " + at +
          "words.txt --vocabulary-is-public --tokens 9 --model sentences-lstm --epsilon 3 "
          "--steps 6",
  };
  for (const std::string& way : ways) {
    SCOPED_TRACE(way);
    std::map<std::string, std::string> of_memory;
    std::ptrdiff_t entries_of_memory = 0;
    for (const char* in : {"memory", "file", "file --threads 3"}) {
      const Finished run = run_cudp(folder_, training("run", way + " --rows-in " + in));
      ASSERT_EQ(run.exit, 0) << run.err;
      // A file that was made for the rows has no name.
      const auto entries = std::distance(fs::directory_iterator(folder_.path()), {});
      if (of_memory.empty()) entries_of_memory = entries;
      EXPECT_EQ(entries, entries_of_memory);
      if (of_memory.empty())
        of_memory = made("run");
      else
        EXPECT_EQ(made("run"), of_memory);
      EXPECT_GT(of_memory.size(), 2u);
      fs::remove_all(folder_ / "run");
    }
  }
}

TEST_F(RowsInCli, ARunGoesOnEitherWayAndNotWithOtherRows) {
  const std::string at = folder_.path().string() + "/";
  const std::string data =
      "--dataset " + at + "x.npy --labels " + at + "y.npy --classes 2 --epsilon 3 ";
  ASSERT_EQ(run_cudp(folder_, training("whole", data + "--steps 4000 --rows-in memory")).exit, 0);
  const std::string x = content_of(at + "x.npy");
  for (const auto& [first, second] : {std::pair{"memory", "file"}, {"file", "memory"}}) {
    SCOPED_TRACE(first);
    CudpProcess process(folder_, training("run", data +
                                                     "--steps 4000 --checkpoint-every 50 "
                                                     "--rows-in " +
                                                     std::string(first)));
    while (newest_checkpoint_file(folder_.path() / "run").empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    process.signal(SIGKILL);
    process.wait();
    const Arguments resume = {"train", "--resume", folder_ / "run", "--quiet", "--rows-in", second};
    std::string other = x;
    other[other.size() - 2] = static_cast<char>(other[other.size() - 2] ^ 1);
    write_text(at + "x.npy", other);
    const Finished refused = run_cudp(folder_, resume);
    EXPECT_EQ(refused.exit, 2);
    EXPECT_NE(refused.err.find("expected the training data that the run began with, found other"),
              std::string::npos)
        << refused.err;
    write_text(at + "x.npy", x);
    const Finished resumed = run_cudp(folder_, resume);
    ASSERT_EQ(resumed.exit, 0) << resumed.err;
    EXPECT_EQ(made("run"), made("whole"));
    fs::remove_all(folder_ / "run");
  }
}

/// The files with coded rows that a run keeps.
std::vector<std::string> kept_files(const fs::path& run) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(run / "private"))
    if (const std::string name = entry.path().filename(); name.starts_with("rows"))
      names.push_back(name);
  std::ranges::sort(names);
  return names;
}

TEST_F(RowsInCli, AResumedRunUsesTheRowsThatWereCoded) {
  const std::string at = folder_.path().string() + "/";
  const std::string table = "--dataset " + at + "patients.csv --schema " + at + "patients.toml ";
  struct Way {
    std::string settings;
    std::string file;
    std::vector<std::string> kept;
  };
  const Way ways[] = {
      {table + "--epsilon 3 --steps 1500", at + "patients.csv", {"rows", "rows-index"}},
      {table + "--epsilon 3 --steps 1500 --holdout 0.2 --holdout-epsilon 1 --holdout-delta 1e-3",
       at + "patients.csv",
       {"rows", "rows-held-out", "rows-index"}},
      {"--dataset " + at + "notes.csv --schema " + at + "notes.toml --vocabulary " + at +
           "words.txt --vocabulary-is-public --tokens 9 --model sentences-lstm --epsilon 3 --steps "
           "150",
       at + "notes.csv",
       {"rows", "rows-index"}},
  };
  for (const Way& way : ways) {
    SCOPED_TRACE(way.settings);
    const std::string rows = content_of(way.file);
    const fs::path run = folder_.path() / "run";
    ASSERT_EQ(run_cudp(folder_, training("whole", way.settings)).exit, 0);
    const auto interrupt = [&] {
      for (int i = 0; i < 20; ++i) {  // until a run is killed before it is complete
        fs::remove_all(run);
        CudpProcess process(folder_,
                            training("run", way.settings + " --rows-in file --checkpoint-every 5"));
        // A process that ends without a checkpoint is a failure, and no reason to wait for ever.
        for (int k = 0; k < 100'000 && newest_checkpoint_file(run).empty(); ++k)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (newest_checkpoint_file(run).empty()) return false;
        process.signal(SIGKILL);
        if (process.wait().exit == -1 && !fs::exists(run / "private" / "result.json")) return true;
      }
      return false;
    };
    const Arguments resume = {"train", "--resume", run, "--quiet"};
    // The rows of the table are no longer read: others have taken their place.
    ASSERT_TRUE(interrupt());
    EXPECT_EQ(kept_files(run), way.kept);
    for (const std::string& name : way.kept)
      EXPECT_EQ(fs::status(run / "private" / name).permissions(), fs::perms(0600)) << name;
    const auto changed = fs::last_write_time(way.file);
    std::string others = rows;
    std::fill(others.begin() + static_cast<std::ptrdiff_t>(rows.find('\n') + 1), others.end(), '?');
    write_text(way.file, others);
    fs::last_write_time(way.file, changed);
    const Finished resumed = run_cudp(folder_, resume);
    ASSERT_EQ(resumed.exit, 0) << resumed.err;
    EXPECT_EQ(made("run"), made("whole"));
    EXPECT_EQ(kept_files(run), std::vector<std::string>());
    write_text(way.file, rows);
    fs::last_write_time(way.file, changed);

    // Damaged rows are coded again, a table that changed is not the run's.
    for (const std::string& name : way.kept) {
      SCOPED_TRACE(name);
      ASSERT_TRUE(interrupt());
      damage(run / "private" / name);
      const Finished again = run_cudp(folder_, resume);
      ASSERT_EQ(again.exit, 0) << again.err;
      EXPECT_EQ(made("run"), made("whole"));
    }
    ASSERT_TRUE(interrupt());
    write_text(way.file, rows.substr(0, rows.find('\n') + 1) +
                             rows.substr(rows.find('\n', rows.find('\n') + 1) + 1));
    const Finished refused = run_cudp(folder_, resume);
    EXPECT_EQ(refused.exit, 2);
    EXPECT_NE(refused.err.find("began with, "), std::string::npos) << refused.err;
    write_text(way.file, rows);
    fs::remove_all(run);
    fs::remove_all(folder_.path() / "whole");
  }
}

TEST_F(RowsInCli, AFileThatIsCutShortIsOneLine) {
  const std::string at = folder_.path().string() + "/";
  const std::pair<std::string, std::string> kinds[] = {
      {"--dataset " + at + "images --model logistic", at + "images/train-images-idx3-ubyte"},
      {"--dataset " + at + "x.npy --labels " + at + "y.npy --classes 2 --model mlp", at + "x.npy"}};
  for (const auto& [data, file] : kinds) {
    SCOPED_TRACE(file);
    const std::string content = content_of(file);
    CudpProcess process(folder_,
                        training("run", data + " --epsilon 3 --steps 1000000 --rows-in file"));
    while (newest_checkpoint_file(folder_.path() / "run").empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    fs::resize_file(file, content.size() - 10);
    const Finished run = process.wait();
    EXPECT_EQ(run.exit, 2);
    const std::vector<std::string> lines = lines_of(run.err);
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines.back(), "cudp: " + file +
                                ": expected the rows that it had when it was opened, found a file "
                                "that was cut short or cannot be read");
    write_text(file, content);
    fs::remove_all(folder_ / "run");
  }
}

TEST_F(RowsInCli, WhatNeedsAllRowsIsRefused) {
  const std::string at = folder_.path().string() + "/";
  const auto refusal = [&](const std::string& more) {
    const Finished run = run_cudp(folder_, training("run", more + " --rows-in file"));
    EXPECT_EQ(run.exit, 2);
    return run.err;
  };
  const std::string table = "--dataset " + at + "patients.csv --schema " + at + "patients.toml ";
  const auto expects = [&](const std::string& more, const std::string& with) {
    EXPECT_NE(refusal(more).find("--rows-in: expected auto or memory with " + with +
                                 ", which needs all rows in memory, found file"),
              std::string::npos)
        << more;
  };
  const Finished linear =
      run_cudp(folder_, with(args("train --delta 1e-3 --method outpert --epsilon 1 --rows-in file"),
                             args(table + "--out " + at + "run")));
  EXPECT_EQ(linear.exit, 2);
  EXPECT_NE(linear.err.find("with --method outpert, which needs all rows in memory"),
            std::string::npos);
  expects(table + "--normalise unit --epsilon 1 --steps 5", "--normalise unit");
  expects("--dataset " + at + "images --features scatter --epsilon 1 --steps 5",
          "--features scatter");
  EXPECT_NE(refusal("--dataset glyphs --epsilon 1 --steps 5")
                .find("--rows-in: expected auto or memory with a built-in or published set"),
            std::string::npos);
}

/// Stack of a thread [bytes] in a process with a limit on anonymous memory, where the whole of each
/// stack counts, however little of it is used: how many threads there are at a time depends on what
/// else the machine does.
constexpr rlim_t kThreadStack = rlim_t{1} << 20;

/// Starts cudp with a limit on its anonymous memory [bytes].
CudpProcess start_with_limit(const TemporaryFolder& folder, const Arguments& words, rlim_t bytes) {
  rlimit data{}, stack{};
  ::getrlimit(RLIMIT_DATA, &data);
  ::getrlimit(RLIMIT_STACK, &stack);
  const rlimit data_limit{.rlim_cur = bytes, .rlim_max = data.rlim_max};
  const rlimit stack_limit{.rlim_cur = kThreadStack, .rlim_max = stack.rlim_max};
  ::setrlimit(RLIMIT_DATA, &data_limit);
  ::setrlimit(RLIMIT_STACK, &stack_limit);
  CudpProcess process(folder, words);
  ::setrlimit(RLIMIT_STACK, &stack);
  ::setrlimit(RLIMIT_DATA, &data);
  return process;
}
Finished run_with_limit(const TemporaryFolder& folder, const Arguments& words, rlim_t bytes) {
  return start_with_limit(folder, words, bytes).wait();
}

/// 300 MB of images under a limit on anonymous memory that is a fraction of them.
TEST_F(RowsInCli, MoreRowsThanMemoryTrainFromFiles) {
  constexpr std::size_t kImages = 382'000;
  constexpr rlim_t kLimit = rlim_t{100} << 20;
  const std::string at = folder_.path().string() + "/";
  fs::create_directory(at + "many");
  {
    std::mt19937_64 random(9);
    std::string block(std::size_t{784} * 1000, '\0');
    for (char& c : block) c = static_cast<char>(random());
    std::ofstream images(at + "many/train-images-idx3-ubyte", std::ios::binary);
    images << idx_images(kImages, 28, 28, "");
    for (std::size_t i = 0; i < kImages; i += 1000) images << block;
    write_text(at + "many/train-labels-idx1-ubyte", idx_labels(kImages, std::string(kImages, 3)));
    for (const char* kind : {"images-idx3", "labels-idx1"})
      fs::copy_file(at + "images/t10k-" + kind + "-ubyte", at + "many/t10k-" + kind + "-ubyte");
  }
  const std::string images =
      "--threads 2 --dataset " + at + "many --model logistic --epsilon 1 --steps 20 ";
  const Finished in_memory =
      run_with_limit(folder_, training("run", images + "--rows-in memory"), kLimit);
  EXPECT_NE(in_memory.exit, 0);
  Finished run = run_with_limit(folder_, training("run", images), kLimit);
  EXPECT_EQ(run.exit, 0) << run.err;
  fs::remove_all(at + "many");
}

/// The rows of the first steps are copied while the file is read for its code, those of later steps
/// in a second pass. Nothing of this shows in a released byte, and a killed run ends in the same.
TEST_F(RowsInCli, RowsOfManyStepsInPassesGiveTheSameBits) {
  constexpr std::size_t kImages = 300'000;
  constexpr rlim_t kLimit = rlim_t{180} << 20;
  const std::string at = folder_.path().string() + "/";
  fs::create_directory(at + "many");
  std::mt19937_64 random(9);
  std::string pixels(784 * kImages, '\0'), labels(kImages, '\0');
  for (std::size_t i = 0; i < pixels.size(); i += 8) {
    const std::uint64_t word = random();
    std::memcpy(pixels.data() + i, &word, 8);
  }
  for (std::size_t i = 0; i < kImages; ++i) labels[i] = static_cast<char>(random() % 10);
  write_text(at + "many/train-images-idx3-ubyte", idx_images(kImages, 28, 28, pixels));
  write_text(at + "many/train-labels-idx1-ubyte", idx_labels(kImages, labels));
  for (const char* kind : {"images-idx3", "labels-idx1"})
    fs::copy_file(at + "images/t10k-" + kind + "-ubyte", at + "many/t10k-" + kind + "-ubyte");
  const std::string images = "--threads 2 --dataset " + at +
                             "many --model logistic --epsilon 1 --steps 400 --batch 100 "
                             "--checkpoint-every 50 ";
  const Finished in_memory = run_cudp(folder_, training("memory", images + "--rows-in memory"));
  ASSERT_EQ(in_memory.exit, 0) << in_memory.err;
  const Finished whole = run_with_limit(folder_, training("whole", images), kLimit);
  ASSERT_EQ(whole.exit, 0) << whole.err;
  EXPECT_EQ(made("whole"), made("memory"));
  const std::string log = content_of(at + "whole/private/log.txt");
  EXPECT_NE(log.find("copies of rows in the order of steps"), std::string::npos) << log;

  CudpProcess process = start_with_limit(folder_, training("run", images), kLimit);
  while (!process.has_ended() && newest_checkpoint_file(folder_.path() / "run").empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  process.signal(SIGKILL);
  process.wait();
  const Arguments resume = {"train", "--resume", folder_ / "run", "--quiet"};
  const Finished resumed = run_with_limit(folder_, resume, kLimit);
  ASSERT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_EQ(made("run"), made("memory"));
}

/// Five million rows of a table with a target, some of them held out: 20 bytes a row of targets,
/// numbers of rows and drawn rows would be more than the limit on anonymous memory. The log states
/// the memory that the training takes, and that states less than the limit.
TEST_F(RowsInCli, NumbersOfTheRowsAreNotInMemory) {
  constexpr int kRows = 5'000'000;
  constexpr rlim_t kLimit = rlim_t{70} << 20;
  const std::string at = folder_.path().string() + "/";
  {
    std::string block;
    for (int i = 0; i < 1000; ++i)
      block += std::to_string(i % 10) + "," + std::to_string(i % 7) + "\n";
    std::ofstream table(at + "long.csv", std::ios::binary);
    table << "x,y\n";
    for (int i = 0; i < kRows; i += 1000) table << block;
    write_text(at + "long.toml",
               "columns = [{name = \"x\", kind = \"numeric\", min = 0, max = 9}, "
               "{name = \"y\", kind = \"target\", min = 0, max = 6}]\n");
  }
  const std::string table = "--threads 2 --dataset " + at + "long.csv --schema " + at +
                            "long.toml --epsilon 1 --steps 5 --holdout 0.2 --holdout-epsilon 1 "
                            "--holdout-delta 1e-3 --rows-in ";
  EXPECT_NE(run_with_limit(folder_, training("memory", table + "memory"), kLimit).exit, 0);
  const Finished run = run_with_limit(folder_, training("run", table + "file"), kLimit);
  EXPECT_EQ(run.exit, 0) << run.err;
  const std::string log = content_of(at + "run/private/log.txt");
  const std::string stated = "at most about ";
  const std::size_t begin = log.find(stated);
  ASSERT_NE(begin, std::string::npos) << log;
  EXPECT_LT(std::stod(log.substr(begin + stated.size())) * 1e6, static_cast<double>(kLimit));
}

}  // namespace
}  // namespace cudp
