// Runs of several ranks: the files of a run of one, whatever their number, and whoever is killed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/crash_fixture.hpp"
#include "tests/support/data_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// What a finished run leaves that no clock decides: all of release/, the ledger, private metrics.
std::map<std::string, std::string> files_of(const fs::path& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    const std::string name = fs::relative(entry.path(), run).string();
    if (!entry.is_regular_file() || name == "private/log.txt" || name == "private/result.json")
      continue;
    files[name] = content_of(entry.path());
  }
  return files;
}

/// The processes that a process has made.
std::vector<pid_t> children_of(pid_t process) {
  std::istringstream in(content_of("/proc/" + std::to_string(process) + "/task/" +
                                   std::to_string(process) + "/children"));
  std::vector<pid_t> all;
  for (pid_t child = 0; in >> child;) all.push_back(child);
  return all;
}

/// Writes a header, and then `count` items of so many bytes, each byte 0 to 9.
void write_blocks(const std::string& path, const std::string& header, std::size_t count,
                  std::size_t item) {
  std::ofstream out(path, std::ios::binary);
  out << header;
  std::string block(item * 1000, '\0');
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>(i * 7919 % 10);
  for (std::size_t done = 0; done < count; done += 1000)
    out.write(block.data(),
              static_cast<std::streamsize>(item * std::min<std::size_t>(1000, count - done)));
}

class CliRanks : public CliCrash {
 protected:
  CliRanks() {
    table_ = write_small_table(folder_, 1700);  // four tiles: some ranks may have no row
  }
  static Arguments on(int ranks) { return {"--ranks", std::to_string(ranks)}; }

  /// Runs the training by itself and on each number of ranks.
  void expect_same(const std::string& name, const Arguments& training,
                   std::initializer_list<int> sizes) {
    SCOPED_TRACE(name);
    const auto out = [&](const std::string& run) { return Arguments{"--out", folder_ / run}; };
    const Finished whole = run_cudp(folder_, with(training, out(name)));
    ASSERT_EQ(whole.exit, 0) << whole.err;
    const auto want = files_of(folder_ / name);
    for (const int ranks : sizes) {
      const std::string run = name + std::to_string(ranks);
      const Finished f = run_cudp(folder_, with(with(training, out(run)), on(ranks)));
      ASSERT_EQ(f.exit, 0) << f.err;
      expect_files(want, run, ranks);
    }
  }
  void expect_files(const std::map<std::string, std::string>& want, const std::string& run,
                    int ranks) const {
    const auto got = files_of(folder_ / run);
    for (const auto& [file, content] : want)
      EXPECT_TRUE(got.contains(file) && got.at(file) == content) << file << " of " << ranks;
    EXPECT_EQ(got.size(), want.size());
  }
  Arguments table() const {
    return with(
        {"train", "--dataset", table_.table, "--schema", table_.schema, "--test-data", table_.test},
        args("--test-data-is-public --seed 11 --delta 1e-5 --threads 1 --quiet --json "
             "--device cpu"));
  }
  Arguments glyphs() const {
    return args(
        "train --dataset glyphs --seed 5 --delta 1e-5 --epsilon 3 --threads 1 --quiet "
        "--json --device cpu --accountant rdp --batch 256");
  }
};

TEST_F(CliRanks, EveryMethodHasTheFilesOfOne) {
  const Arguments few = args("--epsilon 3 --batch 128 --epochs 2 --accountant rdp");
  const auto trained = [&](const char* flags) { return with(with(table(), few), args(flags)); };
  expect_same("dpsgd", trained("--model mlp --ema 0.9 --eval-every 1"), {2, 7});
  expect_same("decay",
              trained("--model mlp --method dpsgd-decay --optimizer adam "
                      "--size-is-public --unsafe-diagnostics"),
              {3});
  expect_same("quantile", trained("--model logistic --method dpsgd-quantile --size-is-public"),
              {2, 4});
  expect_same("adaclip", trained("--model mlp --method adaclip"), {3});
  expect_same("adp-sgd", trained("--model logistic --method adp-sgd --size-is-public"), {2});
  expect_same("dpis", trained("--model mlp --method dpis --dpis-adaptive-clip"), {2, 3, 7});
  expect_same("weights", trained("--model logistic --class-weights 1,3"), {4});
  expect_same("dp-agd", with(table(), args("--epsilon 1 --method dp-agd --model logistic")), {3});
  expect_same("sgd",
              with({"train", "--dataset", table_.table, "--schema", table_.schema},
                   args("--method sgd --model mlp --epochs 1 --batch 128 --seed 4 --threads 1 "
                        "--quiet --json --device cpu")),
              {2});
}

TEST_F(CliRanks, HeldOutRowsAndUnitsOfSeveral) {
  expect_same("held",
              with({"train", "--dataset", table_.table, "--schema", table_.schema},
                   args("--seed 3 --epsilon 3 --delta 1e-5 --batch 128 --epochs 2 --threads 1 "
                        "--quiet --json --device cpu --model mlp --holdout 0.3 --holdout-epsilon 1 "
                        "--holdout-delta 1e-5 --accountant rdp")),
              {2, 3});
  // Rows of a person lie anywhere.
  std::string csv = "who,x,class\n";
  for (int i = 0; i < 1700; ++i)
    csv += "P" + std::to_string(i * 7919 % 600) + "," + std::to_string(i * 31 % 100) + "," +
           (i % 3 == 0 ? "yes" : "no") + "\n";
  write_text(folder_ / "units.csv", csv);
  write_text(folder_ / "units.toml", R"(name = "units"
unit = "who"
max_rows = 3
columns = [
  {name = "who", kind = "ignore"},
  {name = "x", kind = "numeric", min = 0, max = 100},
  {name = "class", kind = "label", values = ["no", "yes"]},
]
)");
  const Arguments units = {"train", "--dataset", folder_ / "units.csv", "--schema",
                           folder_ / "units.toml"};
  expect_same(
      "units",
      with(units, args("--seed 3 --epsilon 3 --delta 1e-5 --batch 256 --epochs 2 --threads 1 "
                       "--quiet --json --device cpu --model logistic --accountant rdp")),
      {2, 4});
}

TEST_F(CliRanks, ReleasedFeaturesAndTexts) {
  expect_same("pca",
              with(glyphs(), args("--model logistic --features pca --feature-dimensions 12 "
                                  "--steps 4 --feature-whiten")),
              {3});
  expect_same("scatter",
              with(glyphs(), args("--features scatter --feature-standardise --steps 2 "
                                  "--feature-cache none")),
              {2});
  expect_same("lstm",
              args("train --preset sentences-lstm --size-is-public --seed 11 --batch 256 --steps 6 "
                   "--ema 0.9 --threads 1 --device cpu --quiet --json --accountant rdp"),
              {3});
}

TEST_F(CliRanks, WhoeverIsKilledAnotherNumberEndsTheSame) {
  const auto training = [&](const std::string& out, int ranks) {
    return with(with(CliCrash::training(out), on(ranks)),
                args("--method dpis --dpis-adaptive-clip"));
  };
  const Finished whole = run_cudp(folder_, training("whole", 1));
  ASSERT_EQ(whole.exit, 0) << whole.err;
  const auto want = files_of(folder_ / "whole");
  std::mt19937 random(8);
  int killed = 0;
  const char* const asked = std::getenv("CUDP_KILLS");
  const int times = asked != nullptr ? std::stoi(asked) : 10;
  for (int i = 0; i < times; ++i) {
    const int ranks = 2 + static_cast<int>(random() % 3);
    const std::string out = "killed" + std::to_string(i);
    SCOPED_TRACE(out + " of " + std::to_string(ranks));
    {
      CudpProcess process(folder_, training(out, ranks));
      wait_for_step(out, static_cast<int>(random() % (kCrashSteps - 10)));
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 5'000));
      const std::vector<pid_t> others = children_of(process.id());
      const std::size_t which = random() % (others.size() + 1);
      ::kill(which == 0 ? process.id() : others[which - 1], SIGKILL);
      const Finished f = process.wait();
      if (which != 0 && f.exit == 1) {
        ++killed;
        EXPECT_NE(f.err.find("was ended by signal 9"), std::string::npos) << f.err;
      }
      killed += f.exit == -1 ? 1 : 0;
    }
    const int next = 1 + static_cast<int>(random() % 4);
    const Finished f = run_cudp(
        folder_, with({"train", "--resume", folder_ / out, "--quiet", "--json"}, on(next)));
    ASSERT_EQ(f.exit, 0) << f.err;
    expect_files(want, out, next);
    fs::remove_all(folder_ / out);
  }
  EXPECT_GE(killed, times / 5);
}

TEST_F(CliRanks, OneThatDoesNotMoveIsNamed) {
  CudpProcess process(folder_, with(with(CliCrash::training("run"), on(3)),
                                    {"--rank-timeout", "10", "--steps", "100000"}));
  wait_for_step("run", 20);
  const std::vector<pid_t> others = children_of(process.id());
  ASSERT_EQ(others.size(), 2u);
  ::kill(others[1], SIGSTOP);
  const Finished f = process.wait();
  EXPECT_EQ(f.exit, 1);
  EXPECT_NE(f.err.find("rank 2 did not come to \""), std::string::npos) << f.err;
  EXPECT_NE(f.err.find("within 10 s (--rank-timeout)"), std::string::npos) << f.err;
  EXPECT_NE(::kill(others[0], 0), 0) << "a process is left";
}

TEST_F(CliRanks, ASignalEndsItWithTryAgain) {
  const Arguments job = with(table(), args("--epsilon 3 --batch 128 --steps 2000 --model mlp "
                                           "--size-is-public --checkpoint-every 10"));
  ASSERT_EQ(run_cudp(folder_, with(job, {"--out", folder_ / "whole"})).exit, 0);
  const Arguments attempt = with(job, {"--resume-or-start", folder_ / "run"});
  int interrupted = 0;
  for (const auto& [signal, ranks] : {std::pair{SIGUSR1, 2}, {SIGTERM, 3}, {SIGINT, 1}}) {
    CudpProcess process(folder_, with(attempt, on(ranks)));
    wait_for_step("run", 20 + 300 * interrupted);
    process.signal(signal);
    const Finished f = process.wait();
    EXPECT_EQ(f.exit, 75) << f.err;
    EXPECT_NE(f.err.find("interrupted at step"), std::string::npos) << f.err;
    interrupted += f.exit == 75 ? 1 : 0;
  }
  EXPECT_EQ(interrupted, 3);
  const Finished last = run_cudp(folder_, with(attempt, on(2)));
  ASSERT_EQ(last.exit, 0) << last.err;
  expect_files(files_of(folder_ / "whole"), "run", 2);
  const Finished done = run_cudp(folder_, with(attempt, on(2)));
  EXPECT_EQ(done.exit, 0) << done.err;
  EXPECT_EQ(done.out, last.out);
}

/// The lines of `err` that are not warnings, such as that of more ranks than cores.
std::string without_warnings(const std::string& err) {
  std::istringstream lines(err);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (line.find(" warning: ") == std::string::npos) kept += line + "\n";
  return kept;
}

/// The reason tells the noisy number of rows, which is certified first.
TEST_F(CliRanks, ARefusalByTheNoisyCountIsCertified) {
  write_small_table(folder_, 9);
  for (int turn = 0; turn < 5; ++turn) {
    const std::string out = "refused" + std::to_string(turn);
    const Finished f = run_cudp(
        folder_, with(with(table(), args("--epsilon 3 --batch 512 --model logistic --ranks 3")),
                      {"--out", folder_ / out}));
    EXPECT_EQ(f.exit, 2);
    EXPECT_TRUE(without_warnings(f.err).starts_with("cudp: --batch: expected at most the "))
        << f.err;
    EXPECT_TRUE(fs::exists(folder_ / (out + "/release/privacy.json"))) << f.err;
  }
}

TEST_F(CliRanks, ALostKeyIsPaidForOnAnyNumber) {
  interrupt_at("run", 50);
  fs::remove(folder_ / "run/private/key");
  const Finished f =
      run_cudp(folder_, with({"train", "--resume", folder_ / "run", "--json", "--quiet"}, on(3)));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("with a new key, and repeated steps are paid for again"), std::string::npos)
      << f.err;
}

TEST_F(CliRanks, WhatCannotBeSharedIsRefused) {
  const auto refused = [&](const Arguments& more, const char* text) {
    const Finished f = run_cudp(folder_, with(with(table(), {"--out", folder_ / "run"}), more));
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_NE(f.err.find(text), std::string::npos) << f.err;
    EXPECT_EQ(std::ranges::count(without_warnings(f.err), '\n'), 1) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  };
  for (const char* method : {"outpert", "objpert", "privgene"})
    refused(with(args("--model logistic --epsilon 1 --ranks 2 --method"), {method}),
            "--ranks: expected 1 with --method");
  refused(args("--epsilon 1 --ranks 0"), "--ranks: expected a whole number of 1 to 256, found 0");
  refused(with(args("--epsilon 1 --ranks 2 --resume-or-start"), {folder_ / "x"}),
          "--resume-or-start: expected no --out with it");
  const Finished audit = run_cudp(folder_, args("audit --preset glyphs-cnn --ranks 2"));
  EXPECT_EQ(audit.exit, 2);
  EXPECT_NE(audit.err.find("--ranks: expected none for an audit"), std::string::npos) << audit.err;
  // A mistake in the data is told once, whoever finds it.
  write_text(table_.table, "x,y,colour,class\n1,2,red\n");
  refused(args("--epsilon 1 --ranks 3"), "small.csv");
}

/// Writes an IDX header, and `count` times `item`.
void write_idx(const std::string& path, const std::vector<std::uint32_t>& header, std::size_t count,
               std::size_t item) {
  std::string all;
  for (const std::uint32_t word : header) all += big_endian(word);
  write_blocks(path, all, count, item);
}

TEST_F(CliRanks, ImagesTablesAndTextsByTheirRanges) {
  const Arguments few = args(
      "--epsilon 3 --delta 1e-5 --batch 128 --steps 4 --threads 1 --seed 2 --quiet --json "
      "--device cpu --accountant rdp");
  const std::string images = folder_ / "images";
  fs::create_directory(images);
  for (int b = 1; b <= 5; ++b)
    write_blocks(images + "/data_batch_" + std::to_string(b) + ".bin", "",
                 static_cast<std::size_t>(100 + 311 * b % 700), 3073);
  write_blocks(images + "/test_batch.bin", "", 600, 3073);
  expect_same("cifar", with({"train", "--dataset", images, "--model", "logistic"}, few), {2, 7});

  std::string reviews = "class\ttext\n";
  for (int i = 0; i < 1300; ++i)
    reviews += std::string(i % 2 == 0 ? "good" : "bad") + "\ta plot of " +
               std::to_string(i * i % 37) + " actors, " + std::to_string(i % 11) + "\n";
  write_text(folder_ / "reviews.tsv", reviews);
  write_text(folder_ / "reviews.toml", R"(name = "reviews"
delimiter = "\t"
columns = [
  {name = "class", kind = "label", values = ["bad", "good"]},
  {name = "text", kind = "text"},
]
)");
  expect_same("texts",
              with(with({"train", "--dataset", folder_ / "reviews.tsv", "--schema",
                         folder_ / "reviews.toml"},
                        few),
                   args("--accept-private-bounds --tokens 8 --model sentences-lstm")),
              {3});
}

/// The most memory that a process had, in bytes; 0 where it is gone.
std::uint64_t largest_memory(pid_t process) {
  std::istringstream in(content_of("/proc/" + std::to_string(process) + "/status"));
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
  return 0;
}

class CliRanksMemory : public CliRanks {
 protected:
#if defined(CUDP_SANITIZED)
  void SetUp() override { GTEST_SKIP() << "a sanitizer's own memory is counted, too"; }
#endif

  /// Trains on four ranks, each of which may have so many bytes.
  void expect_memory(const Arguments& data, std::uint64_t max_bytes) const {
    CudpProcess process(folder_,
                        with(with(with({"train"}, data),
                                  args("--epsilon 3 --delta 1e-7 --model logistic --batch 512 "
                                       "--steps 200 --threads 1 --seed 2 --quiet --json "
                                       "--device cpu --accountant rdp --ranks 4")),
                             {"--out", folder_ / "run"}));
    std::map<pid_t, std::uint64_t> most;
    const auto look = [&](pid_t p) {
      const std::uint64_t bytes = largest_memory(p);
      if (bytes > 0) most[p] = std::max(most[p], bytes);
      return bytes > 0;
    };
    while (look(process.id())) {
      for (const pid_t child : children_of(process.id())) look(child);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const Finished f = process.wait();
    ASSERT_EQ(f.exit, 0) << f.err;
    EXPECT_GE(most.size(), 4u);
    for (const auto& [p, bytes] : most) EXPECT_LT(bytes, max_bytes);
  }
};

TEST_F(CliRanksMemory, IsThatOfARangeOfIdxImages) {
  constexpr std::uint32_t kImages = 510'000;  // 400 MB
  const std::string data = folder_ / "images";
  fs::create_directory(data);
  write_idx(data + "/train-images-idx3-ubyte", {2051, kImages, 28, 28}, kImages, 784);
  write_idx(data + "/train-labels-idx1-ubyte", {2049, kImages}, kImages, 1);
  write_idx(data + "/t10k-images-idx3-ubyte", {2051, 1000, 28, 28}, 1000, 784);
  write_idx(data + "/t10k-labels-idx1-ubyte", {2049, 1000}, 1000, 1);
  expect_memory({"--dataset", data}, std::uint64_t{200} << 20);
}

TEST_F(CliRanksMemory, IsThatOfARangeOfCifarImages) {
  const std::string data = folder_ / "images";
  fs::create_directory(data);
  for (int b = 1; b <= 5; ++b)  // 400 MB
    write_blocks(data + "/data_batch_" + std::to_string(b) + ".bin", "", 26'000, 3073);
  write_blocks(data + "/test_batch.bin", "", 1000, 3073);
  expect_memory({"--dataset", data}, std::uint64_t{200} << 20);
}

TEST_F(CliRanksMemory, IsThatOfARangeOfATable) {
  constexpr int kColumns = 200;
  constexpr std::size_t kTableRows = 250'000;  // 200 MB as they are kept
  std::string header;
  std::string schema = "name = \"wide\"\ncolumns = [\n";
  std::string row;
  for (int c = 0; c < kColumns; ++c) {
    header += "x" + std::to_string(c) + ",";
    row += std::to_string(c * 7 % 10) + ",";
    schema += "  {name = \"x" + std::to_string(c) + "\", kind = \"numeric\", min = 0, max = 9},\n";
  }
  write_text(folder_ / "wide.toml",
             schema + "  {name = \"class\", kind = \"label\", values = [\"0\", \"1\"]},\n]\n");
  {
    std::ofstream csv(folder_ / "wide.csv");
    csv << header << "class\n";
    for (std::size_t i = 0; i < kTableRows; ++i) csv << row << i % 2 << "\n";
  }
  expect_memory({"--dataset", folder_ / "wide.csv", "--schema", folder_ / "wide.toml"},
                std::uint64_t{110} << 20);
}

/// mpirun, where it is installed.
class CliMpi : public CliRanks {
 protected:
  void SetUp() override {
    if (run_cudp(folder_, {"info"}).out.find("MPI: ") == std::string::npos)
      GTEST_SKIP() << "no MPI library";
    if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "no mpirun";
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                             "OMPI_MCA_mpi_yield_when_idle"})
      ::setenv(name, "1", 1);
  }
  Finished mpirun(int ranks, const Arguments& arguments) const {
    std::string line =
        "mpirun --oversubscribe --bind-to none -n " + std::to_string(ranks) + " " + cudp_binary();
    for (const std::string& word : arguments) line += " '" + word + "'";
    const std::string err = folder_ / "mpirun.err";
    const int status =
        std::system((line + " > '" + (folder_ / "mpirun.out") + "' 2> '" + err + "'").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(folder_ / "mpirun.out"),
            content_of(err)};
  }
};

TEST_F(CliMpi, HasTheFilesOfOne) {
  const Arguments training =
      with(table(),
           args("--epsilon 3 --batch 128 --epochs 2 --model mlp --method dpis --accountant rdp"));
  ASSERT_EQ(run_cudp(folder_, with(training, {"--out", folder_ / "whole"})).exit, 0);
  for (const int ranks : {2, 4}) {
    const std::string run = "mpi" + std::to_string(ranks);
    const Finished f = mpirun(ranks, with(training, {"--out", folder_ / run}));
    ASSERT_EQ(f.exit, 0) << f.err;
    expect_files(files_of(folder_ / "whole"), run, ranks);
    // Complete: every rank hears of it.
    EXPECT_EQ(mpirun(ranks, {"train", "--resume", folder_ / run, "--quiet"}).exit, 0);
  }
}

TEST_F(CliMpi, OneRefusalEndsAll) {
  const Finished f =
      mpirun(3, with(table(), args("--epsilon 1 --model logistic --method outpert")));
  EXPECT_EQ(f.exit, 2) << f.err;
  EXPECT_NE(f.err.find("cudp: --ranks: expected 1 with --method outpert"), std::string::npos)
      << f.err;
}

TEST_F(CliRanks, ProcessesWithoutAnMpiLibraryAreRefused) {
  const std::map<std::string, std::string> environment = {
      {"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"CUDP_MPI_LIBRARY", "/no/such/mpi.so"}};
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  const Finished f = run_cudp(folder_, with(table(), args("--epsilon 1")));
  for (const auto& [name, value] : environment) ::unsetenv(name.c_str());
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("PMI_SIZE: expected one process, or an MPI library"), std::string::npos)
      << f.err;
  EXPECT_NE(f.err.find("/no/such/mpi.so"), std::string::npos) << f.err;
}

TEST_F(CliMpi, ProcessesThatDoNotKnowEachOtherAreRefused) {
  ::setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  const Finished f = run_cudp(folder_, with(table(), args("--epsilon 1")));
  ::unsetenv("SLURM_STEP_NUM_TASKS");
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("SLURM_STEP_NUM_TASKS: expected"), std::string::npos) << f.err;
  EXPECT_NE(f.err.find("would release for itself"), std::string::npos) << f.err;
}

}  // namespace
}  // namespace cudp
