#include "runtime/run/checkpoint.hpp"

#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/data/row_pass.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/key_file.hpp"
#include "tests/support/temporary_folder.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

Checkpoint example(std::uint64_t step) {
  Checkpoint c;
  c.training.step = step;
  c.training.method.numbers = {{"plan", {{"sensitivity", 0.1 + 1e-17}}},
                               {"step_size_sum", 20.0 + 1e-15}};
  c.training.method.arrays = {{"parameters", {1.0f, -2.5f, 3e-20f}},
                              {"moment1", {0.1f, 0.2f, 0.3f}},
                              {"norms", {0.5f, 1.5f}}};
  c.parameters = 3;
  c.training.size = {59'999.0, 33.5};
  c.training.feature_release = {0.5f, 1e-9f};
  c.config = "batch = 512\n";
  c.model = "name = 'm'";
  c.arithmetic = "cpu avx2";
  c.program = "deadbeef, glibc 2.36 with fma";
  c.data = "0123";
  c.key_check = 0xfedcba9876543210;
  c.training.ledger.charge({privacy::Gaussian{40.0}, 1});
  c.training.ledger.authorise(0, step, privacy::PoissonGaussian{0.01, 1.0 / 3.0});
  c.training.used_charges = {{privacy::Gaussian{40.0}, 1, 1}, {privacy::Laplace{1.0 / 3.0}, 2, 3}};
  c.ledger_was_lost = true;
  c.boot = "6f2c";
  c.training.metrics = {{1.0, 117, 0.7, 0.5, {}}};
  for (std::size_t i = 0; i < metrics(PredictionKind::classes).size(); ++i)
    c.training.metrics[0].test.values.push_back(0.91 / static_cast<double>(i + 1));
  c.training.seconds = 12.5;
  return c;
}

fs::perms mode(const fs::path& path) { return fs::status(path).permissions(); }

TEST(Checkpoint, RestoresEverything) {
  const Checkpoint c = example(234);
  const Checkpoint back = decode_checkpoint(encode_checkpoint(c), "c");
  EXPECT_EQ(back.training.step, c.training.step);
  EXPECT_EQ(back.training.method.numbers, c.training.method.numbers);
  EXPECT_EQ(back.training.method.arrays, c.training.method.arrays);
  EXPECT_EQ(back.parameters, c.parameters);
  EXPECT_EQ(back.training.size.value, c.training.size.value);
  EXPECT_EQ(back.training.size.noise, c.training.size.noise);
  EXPECT_EQ(back.training.feature_release, c.training.feature_release);
  EXPECT_EQ(back.config, c.config);
  EXPECT_EQ(back.model, c.model);
  EXPECT_EQ(back.arithmetic, c.arithmetic);
  EXPECT_EQ(back.program, c.program);
  EXPECT_EQ(back.data, c.data);
  EXPECT_EQ(back.key_check, c.key_check);
  EXPECT_EQ(back.training.ledger, c.training.ledger);
  EXPECT_EQ(back.training.used_charges, c.training.used_charges);
  EXPECT_EQ(back.ledger_was_lost, c.ledger_was_lost);
  EXPECT_EQ(back.boot, c.boot);
  ASSERT_EQ(back.training.metrics.size(), 1u);
  EXPECT_EQ(encode_metrics(back.training.metrics), encode_metrics(c.training.metrics));
  EXPECT_EQ(back.training.seconds, c.training.seconds);
}

TEST(Checkpoint, DamageAnywhereIsFound) {
  const std::string whole = encode_checkpoint(example(5));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    EXPECT_THROW(decode_checkpoint(damaged, "c"), Error) << "byte " << i;
    EXPECT_THROW(decode_checkpoint(whole.substr(0, i), "c"), Error) << "cut at " << i;
  }
  EXPECT_THROW(decode_checkpoint(whole + '\0', "c"), Error);
}

/// Returns the checkpoint in the format before this one, which differs in its name alone.
std::string in_earlier_format(const Checkpoint& c) {
  constexpr std::string_view kThis = "cudp checkpoint 10\n";
  std::string bytes = encode_checkpoint(c);
  EXPECT_TRUE(bytes.starts_with(kThis));
  bytes.replace(0, kThis.size(), "cudp checkpoint 9\n");
  bytes.resize(bytes.size() - sizeof(std::uint64_t));
  const std::uint64_t sum = checksum(bytes);
  return bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
}

TEST(Checkpoint, OneOfTheFormatBeforeIsRead) {
  const Checkpoint back = decode_checkpoint(in_earlier_format(example(117)), "c");
  EXPECT_TRUE(back.is_earlier);
  EXPECT_EQ(back.training.step, 117u);
  EXPECT_FALSE(decode_checkpoint(encode_checkpoint(back), "c").is_earlier);
}

/// A checkpoint of another version is told apart from a damaged one.
TEST(Checkpoint, OlderFormatsAreRefusedInOneLine) {
  const TemporaryFolder folder;
  const Authenticator authenticator(key_from_seed(1));
  for (const char* const name : {"checkpoint-5", "checkpoint-7"})
    write_authenticated(folder / name, "checkpoint", "cudp checkpoint 8\nand what that held",
                        authenticator, Sync::no);
  const auto damaged = [](const std::string& line) { ADD_FAILURE() << line; };
  try {
    (void)newest_checkpoint(folder.path(), damaged);
    ADD_FAILURE() << "expected an error";
  } catch (const InputError& e) {
    EXPECT_EQ(e.what(), folder / "checkpoint-7" +
                            ": expected a checkpoint of this version of cudp, found one of another "
                            "version, which alone can continue the run (cudp train --resume); "
                            "otherwise begin another run: cudp train --out DIR");
  }
  // It does not hide an intact checkpoint, but whoever resumes is told of it.
  save_checkpoint(folder.path(), example(6), authenticator);
  std::vector<std::string> lines;
  const auto found =
      newest_checkpoint(folder.path(), [&](const std::string& line) { lines.push_back(line); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->checkpoint.training.step, 6u);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with(folder / "checkpoint-7" + ": expected")) << lines[0];
}

TEST(Checkpoint, TheNewestTwoAreKeptAndTheNewestIntactOneIsUsed) {
  const TemporaryFolder folder;
  const Authenticator authenticator(key_from_seed(1));
  for (const std::uint64_t step : {9, 10, 200, 1000})
    save_checkpoint(folder.path(), example(step), authenticator);
  EXPECT_FALSE(fs::exists(folder / "checkpoint-9"));
  EXPECT_FALSE(fs::exists(folder / "checkpoint-10"));
  EXPECT_EQ(mode(folder / "checkpoint-1000"), fs::perms(0600));
  write_text(folder / "checkpoint-x", "");
  write_text(folder / ".checkpoint-2000.new", "half");

  std::vector<std::string> complaints;
  const auto note = [&](const std::string& line) { complaints.push_back(line); };
  EXPECT_EQ(newest_checkpoint(folder.path(), note)->checkpoint.training.step, 1000u);
  EXPECT_TRUE(complaints.empty());
  fs::resize_file(folder / "checkpoint-1000", 100);
  EXPECT_EQ(newest_checkpoint(folder.path(), note)->checkpoint.training.step, 200u);
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_NE(complaints[0].find("checkpoint-1000: damaged"), std::string::npos) << complaints[0];
  fs::remove(folder / "checkpoint-200");
  EXPECT_FALSE(newest_checkpoint(folder.path(), note));
  remove_checkpoints(folder.path());
  EXPECT_FALSE(fs::exists(folder / "checkpoint-1000"));
  EXPECT_TRUE(fs::exists(folder / "checkpoint-x"));
}

TEST(KeyFile, IsForTheOwnerAndRefusesDamage) {
  const TemporaryFolder folder;
  const fs::path path = folder / "key";
  EXPECT_FALSE(read_key(path));
  const RandomKey key{{1, 2, 3, 4, 5, 6, 7, 0xffffffff}};
  write_key(path, key);
  EXPECT_EQ(mode(path), fs::perms(0600));
  const auto back = read_key(path);
  ASSERT_TRUE(back);
  EXPECT_TRUE(std::equal(key.words, key.words + 8, back->key().words));
  const std::string whole = content_of(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    write_text(path, damaged);
    EXPECT_FALSE(read_key(path)) << i;
    write_text(path, whole.substr(0, i));
    EXPECT_FALSE(read_key(path)) << i;
  }
  EXPECT_NE(key_check(key), key_check({{1, 2, 3, 4, 5, 6, 7, 8}}));
}

/// Another name of the same file shows what is left on the disk.
TEST(KeyFile, IsOverwrittenBeforeItIsRemoved) {
  for (const Sync sync : {Sync::yes, Sync::no}) {
    const TemporaryFolder folder;
    for (const char* name : {"key", ".key.new", ".key.new-12-1"}) {
      write_key(folder / name, RandomKey{{1, 2, 3, 4, 5, 6, 7, 8}}, sync);
      fs::create_hard_link(folder / name, folder / (std::string("other") + name));
    }
    const std::size_t size = content_of(folder / "key").size();
    erase_key(folder / "key");
    for (const char* name : {"key", ".key.new", ".key.new-12-1"}) {
      EXPECT_FALSE(fs::exists(folder / name));
      EXPECT_EQ(content_of(folder / (std::string("other") + name)), std::string(size, '\0'));
    }
    EXPECT_NO_THROW(erase_key(folder / "key"));
  }
}

TEST(Files, AreReplacedWholeAndKeepTheirMode) {
  const TemporaryFolder folder;
  const fs::path path = folder / "a";
  write_atomically(path, "first", 0600);
  write_atomically(path, "second", 0600);
  EXPECT_EQ(read_file(path), "second");
  EXPECT_EQ(mode(path), fs::perms(0600));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  write_atomically(path, "");
  EXPECT_EQ(read_file(path), "");
  EXPECT_THROW(write_atomically(folder / "no/such/folder", "x"), Error);
  EXPECT_THROW(read_file(folder / "nothing"), Error);
  const FolderLock lock(folder.path());
  EXPECT_THROW(FolderLock{folder.path()}, Error);
}

/// As tasks of `cudp sweep --share` do that end together.
TEST(Files, OfOneNameMayBeWrittenByThreadsAndProcessesAtOnce) {
  constexpr int kWriters = 4, kTimes = 100;
  const TemporaryFolder folder;
  const fs::path path = folder / "sweep.csv";
  const auto content = [](int writer) {
    return std::string(static_cast<std::size_t>(1000 * (writer + 1)),
                       static_cast<char>('a' + writer));
  };
  const auto write_often = [&](int writer) {
    for (int i = 0; i < kTimes; ++i) write_atomically(path, content(writer), 0600);
  };
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    try {
      std::jthread other([&] {
        for (int i = 0; i < kTimes; ++i) replace_file(path, content(kWriters), 0600);
      });
      write_often(writer);
      other.join();
      ::_exit(0);
    } catch (const Error&) {
      ::_exit(1);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "it could not write the file";
  }
  const std::string last = read_file(path);
  const bool is_whole = [&] {
    for (int writer = 0; writer <= kWriters; ++writer)
      if (last == content(writer)) return true;
    return false;
  }();
  EXPECT_TRUE(is_whole) << last.size() << " bytes";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

/// A process was killed while it wrote the file, and so was another, which found that one's.
TEST(Files, HalfWrittenAreNotInTheWayAndCanBeRemoved) {
  const TemporaryFolder folder;
  const std::vector<std::string> left = {".a.new", ".a.new-77", ".a.new-77-1", ".key.new-5-2"};
  for (const std::string& name : left) write_text(folder / name, "half");
  fs::create_hard_link(folder / ".key.new-5-2", folder / "what is on the disk");
  for (const char* const name : {".a.new-b", ".a.new-", "a.new", ".news"})
    write_text(folder / name, "a note");
  write_atomically(folder / "a", "whole");
  EXPECT_EQ(read_file(folder / "a"), "whole");
  EXPECT_EQ(read_file(folder / ".a.new"), "half") << "it may be another process's";
  remove_unfinished_files(folder.path());
  for (const std::string& name : left) EXPECT_FALSE(fs::exists(folder / name)) << name;
  for (const char* const name : {".a.new-b", ".a.new-", "a.new", ".news", "a"})
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  EXPECT_EQ(read_file(folder / "what is on the disk"), std::string(4, '\0'));
  EXPECT_TRUE(is_unfinished(".a.new-77-1", "a"));
  EXPECT_FALSE(is_unfinished(".b.new-77-1", "a"));

  // What is not a file stays where it is, and nothing is written past it.
  fs::create_directory(folder / ".b.new");
  EXPECT_THROW(write_atomically(folder / "b", "x"), Error);
  EXPECT_FALSE(fs::exists(folder / "b"));
}

TEST(RunFolder, AppearsWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const fs::path place = folder / "runs/a";
  {
    const NewRunFolder abandoned(place);
    write_text(abandoned.folder().config(), "x");
  }
  EXPECT_FALSE(fs::exists(place));
  EXPECT_TRUE(fs::is_empty(folder / "runs"));
  NewRunFolder made(place);
  write_text(made.folder().config(), "x");
  const RunFolder run = made.publish();
  EXPECT_EQ(content_of(run.config()), "x");
  EXPECT_EQ(mode(run.checkpoints()), fs::perms(0700));
  EXPECT_THROW(NewRunFolder{place}, InputError);
  fs::create_directory(folder / "empty");
  NewRunFolder(folder / "empty/").publish();
  EXPECT_TRUE(fs::exists(folder / "empty/release"));
}

TEST(RunFolder, OfAStartThatWasKilledIsRemovedByTheNextOne) {
  const TemporaryFolder folder;
  for (const char* const name : {".a.new-1/private", ".a.new-2-3/release", ".a.new-b", ".c.new-1"})
    fs::create_directories(folder / name);
  write_text(folder / ".a.new-1/private/key", "x");
  write_text(folder / ".a.new-4", "not a folder");
  NewRunFolder made(folder / "a");
  for (const char* const name : {".a.new-1", ".a.new-2-3"})
    EXPECT_FALSE(fs::exists(folder / name)) << name;
  for (const char* const name : {".a.new-b", ".c.new-1", ".a.new-4"})
    EXPECT_TRUE(fs::exists(folder / name)) << name;
}

/// With a generated name, too, whenever that start was; but no folder that a start may still use.
TEST(RunFolder, OfAStartWithAGeneratedNameThatWasKilledIsRemovedByTheNextOne) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const auto make = [](const std::string& name, fs::perms mode = fs::perms(0700)) {
    fs::create_directories("runs/" + name + "/private");
    fs::permissions("runs/" + name, mode);
  };
  const char* const dead[] = {".a-b-20260102-030405.new-1", ".a-b-20260102-030405-2.new-1-2"};
  const char* const kept[] = {".a-20260102-030405.new-1", ".a-b-20260102-030405.new-x",
                              ".a-b-c-20260102-030405.new-1", ".a-b-20260102-030407.new-1"};
  for (const char* const name : dead) make(name);
  for (const char* const name : kept) make(name);
  make(".a-b-20260102-030406.new-1", fs::perms(0755));  // of a version without locks
  fs::create_directories("runs/a-b-20260102-030405");
  fs::create_directories("runs/a-b-20260102-030407");
  const int used = ::open("runs/.a-b-20260102-030407.new-1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(used, LOCK_EX | LOCK_NB), 0);
  const ReservedFolder made = reserve_run_folder("a b");
  EXPECT_TRUE(made.path.filename().string().starts_with("a-b-")) << made.path;
  for (const char* const name : dead) EXPECT_FALSE(fs::exists(fs::path("runs") / name)) << name;
  for (const char* const name : kept) EXPECT_TRUE(fs::exists(fs::path("runs") / name)) << name;
  EXPECT_TRUE(fs::exists("runs/.a-b-20260102-030406.new-1"));
  EXPECT_FALSE(fs::exists("runs/a-b-20260102-030405"));
  EXPECT_TRUE(fs::exists("runs/a-b-20260102-030407"));
  ::close(used);
  (void)reserve_run_folder("a-b");
  EXPECT_FALSE(fs::exists("runs/.a-b-20260102-030407.new-1"));
  fs::current_path(before);
}

TEST(RunFolder, OfAStartInProgressIsItsOwnAndHidden) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "plain");
  NewRunFolder one(folder / "a");
  write_text(one.folder().config(), "one");
  EXPECT_EQ(mode(one.folder().root()), fs::perms(0700));
  {
    // The process's number is the same, as it may be in two containers.
    const NewRunFolder two(folder / "a");
    EXPECT_NE(two.folder().root(), one.folder().root());
    EXPECT_FALSE(fs::exists(two.folder().config()));
    EXPECT_TRUE(fs::exists(one.folder().config()));
  }
  const RunFolder run = one.publish();
  EXPECT_EQ(content_of(run.config()), "one");
  EXPECT_EQ(mode(run.root()), mode(folder / "plain"));
}

/// A code is of one key, one purpose and one text.
TEST(Checkpoint, AFileThatTheRunDidNotWriteIsTold) {
  const TemporaryFolder folder;
  const Authenticator authenticator(key_from_seed(1));
  save_checkpoint(folder.path(), example(9), authenticator);
  const auto stored = newest_checkpoint(folder.path(), [](const std::string&) {});
  ASSERT_TRUE(stored);
  EXPECT_TRUE(stored->is_authentic(authenticator));
  EXPECT_FALSE(stored->is_authentic(Authenticator(key_from_seed(2))));
  EXPECT_FALSE(authenticator.matches("ledger", stored->file.content, stored->file.tag));
  Checkpoint forged = stored->checkpoint;
  forged.training.method.numbers["plan"]["sensitivity"] = 0.05;
  EXPECT_FALSE(authenticator.matches("checkpoint", encode_checkpoint(forged), stored->file.tag));
  EXPECT_FALSE(authenticator.matches("checkpoint", stored->file.content, ""));
  EXPECT_FALSE(
      authenticator.matches("checkpoint", stored->file.content, stored->file.tag.substr(1)));
}

Dataset three_blocks() {
  Dataset d;
  d.shape = {2, 1, 1};
  d.classes = 2;
  for (int i = 0; i < 600; ++i) {
    d.floats.insert(d.floats.end(), {static_cast<float>(i), 0.5f});
    d.labels.push_back(static_cast<std::uint8_t>(i % 2));
  }
  return d;
}

TEST(Checkpoint, CodesOfDataTellEveryChangeAndItsBlock) {
  const Authenticator authenticator(key_from_seed(1));
  const Dataset data = three_blocks();
  const std::string tags = authenticator.block_tags(data, 1);
  ASSERT_EQ(tags.size(), 3u * 16u);
  EXPECT_EQ(authenticator.block_tags(data, 3), tags);
  const auto changed_blocks = [&](const Dataset& other) {
    const std::string now = authenticator.block_tags(other, 1);
    std::string changed;
    for (std::size_t b = 0; b < std::min(now.size(), tags.size()) / 16; ++b)
      if (now.compare(16 * b, 16, tags, 16 * b, 16) != 0) changed += std::to_string(b);
    EXPECT_EQ(data_tag(authenticator, other, now) == data_tag(authenticator, data, tags),
              now == tags);
    return changed;
  };
  Dataset other = data;
  other.labels[300] ^= 1;
  EXPECT_EQ(changed_blocks(other), "1");
  other = data;
  other.floats[0] = -0.0f;  // equal to what it was, of other bits
  EXPECT_EQ(changed_blocks(other), "0");
  other = data;
  std::swap(other.floats[0], other.floats[2]);
  std::swap(other.labels[0], other.labels[1]);
  EXPECT_EQ(changed_blocks(other), "0") << "the order counts";
  other = data;
  other.floats.resize(std::size_t{2} * 599);
  other.labels.resize(599);
  EXPECT_EQ(changed_blocks(other), "2");
  other = data;
  other.classes = 3;
  EXPECT_NE(data_tag(authenticator, other, tags), data_tag(authenticator, data, tags));
  EXPECT_NE(data_tag(authenticator, data, tags, "held out"),
            data_tag(authenticator, data, tags, "trained on"));
  EXPECT_NE(Authenticator(key_from_seed(2)).block_tags(data, 1), tags);
}

/// The codes are those of the bytes that were handed over, or of the file if they were not all.
TEST(Checkpoint, CodesOfRowsInAFileThatIsReadForAnotherPurposeToo) {
  const TemporaryFolder folder;
  const Authenticator authenticator(key_from_seed(1));
  Dataset data = three_blocks();
  const std::string tags = authenticator.block_tags(data, 1);
  std::string bytes(reinterpret_cast<const char*>(data.floats.data()),
                    data.floats.size() * sizeof(float));
  write_text(folder / "rows", bytes);
  data.floats.clear();
  data.rows = open_rows(folder / "rows", 0, 2 * sizeof(float), 600);
  EXPECT_EQ(authenticator.block_tags(data, 2), tags);
  const auto read = [&](bool all) {
    return authenticator.block_tags(data, 2, [&](const RowUse& use) {
      EXPECT_EQ(use.multiple, 256u);
      const std::span rows(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      constexpr std::size_t kBytes = std::size_t{512} * 8;
      use.use(512, rows.subspan(kBytes));
      if (all) use.use(0, rows.first(kBytes));
      return all;
    });
  };
  EXPECT_EQ(read(true), tags);
  EXPECT_EQ(read(false), tags);
  bytes[std::size_t{300} * 8] ^= 1;
  const std::string other = read(true);
  for (std::size_t b = 0; b < 3; ++b)
    EXPECT_EQ(other.substr(16 * b, 16) == tags.substr(16 * b, 16), b != 1) << b;
  EXPECT_EQ(read(false), tags);
}

/// The same examples, drawn by other numbers, are other batches.
TEST(Checkpoint, CodesOfDataTellTheNumbersThatTheyAreDrawnBy) {
  const Authenticator authenticator(key_from_seed(1));
  const auto code = [&](const Dataset& d) {
    return data_tag(authenticator, d, authenticator.block_tags(d, 1));
  };
  Dataset data = three_blocks();
  const std::string places = code(data);
  for (RowArray<std::uint32_t> Dataset::*const of : {&Dataset::numbers, &Dataset::first_rows}) {
    Dataset numbered = data;
    for (std::uint32_t i = 0; i < 600; ++i) (numbered.*of).push_back(i + i / 300);
    const std::string before = code(numbered);
    EXPECT_NE(before, places);
    ++(numbered.*of)[599];
    EXPECT_NE(code(numbered), before);
    --(numbered.*of)[599];
    EXPECT_EQ(code(numbered), before);
    --(numbered.*of)[300];
    EXPECT_NE(code(numbered), before);
  }
}

TEST(Checkpoint, CodesOfTextsTellTheirWordsLengthsAndVectors) {
  const Authenticator authenticator(key_from_seed(1));
  Dataset texts;
  texts.shape = {1, 1, 3};
  texts.classes = 2;
  texts.words = 5;
  texts.tokens = {1, 2, 0, 3, 0, 0};
  texts.lengths = {2, 1};
  texts.labels = {0, 1};
  auto vectors = std::make_shared<WordVectors>();
  *vectors = {5, 1, {0, 1, 2, 3, 4}};
  texts.vectors = vectors;
  const auto code = [&](const Dataset& d) {
    return data_tag(authenticator, d, authenticator.block_tags(d, 1));
  };
  const std::string whole = code(texts);
  Dataset other = texts;
  EXPECT_EQ(code(other), whole);
  other.tokens[1] = 4;
  EXPECT_NE(code(other), whole);
  other = texts;
  other.lengths[1] = 2;  // one more word, of number 0
  EXPECT_NE(code(other), whole);
  other = texts;
  other.words = 6;
  EXPECT_NE(code(other), whole);
  other = texts;
  auto changed = std::make_shared<WordVectors>(*vectors);
  changed->values[4] = 4.5f;
  other.vectors = changed;
  EXPECT_NE(code(other), whole);
  other.vectors = nullptr;
  EXPECT_NE(code(other), whole);
}

}  // namespace
}  // namespace cudp
