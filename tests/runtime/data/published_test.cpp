#include "runtime/data/published.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "runtime/data/load.hpp"
#include "runtime/data/schema.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/test_files.hpp"

// A published name is a claim about content.

namespace cudp {
namespace {

namespace fs = std::filesystem;

std::string record() { return std::string(3073, '\1'); }

/// Small files under the names of a published set's, each readable.
void write_made_up(const TempFolder& dir, const std::string& set) {
  for (const PublishedFile& f : published_files()) {
    if (f.set != set) continue;
    const std::string file = (set == "ipums-br" ? "ipums" : set) + "/" + std::string(f.file);
    if (f.file.find("images") != std::string_view::npos)
      dir.write(file, idx_images(3, 2, 2, "abcdefghijkl"));
    else if (f.file.find("labels") != std::string_view::npos)
      dir.write(file, idx_labels(3, {"\0\1\2", 3}));
    else if (set == "cifar-10")
      dir.write(file, record());
    else if (set == "imdb")
      dir.write(file, "1\tSECRET film\n0\tbad\n");
    else
      dir.write(file, "SECRET, 1, 2\n");  // does not fit the schema: no matter
  }
  dir.write("words.txt", "film\nbad\n");
}

class PublishedName : public testing::TestWithParam<const char*> {};

TEST_P(PublishedName, IsRefusedForOtherContent) {
  const std::string set = GetParam();
  const TempFolder dir;
  write_made_up(dir, set);
  const std::string line = refusal_of(
      [&] {
        load_data({.dataset = set,
                   .dir = dir.path(),
                   .text = set == "imdb" ? TextOptions{.vocabulary = dir.path() + "/words.txt"}
                                         : TextOptions{}});
      },
      dir.path());
  EXPECT_TRUE(line.starts_with("DIR/")) << line;
  EXPECT_NE(line.find(": expected the published "), std::string::npos) << line;
  EXPECT_NE(line.find(" of " + set + " (unpacked: SHA-256 "), std::string::npos) << line;
  EXPECT_NE(line.find("of your own, which are private: --dataset DIR/"), std::string::npos) << line;
  EXPECT_EQ(line.find("SECRET"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  // What is scored, too.
  EXPECT_NE(refusal_of([&] { load_test_data({.dataset = set, .dir = dir.path()}); }), "");
}

INSTANTIATE_TEST_SUITE_P(Sets, PublishedName,
                         testing::Values("mnist", "fashion-mnist", "cifar-10", "adult", "bank",
                                         "ipums-br", "imdb"));

TEST(Published, EveryNameWithFilesHasDigests) {
  std::set<std::string_view> sets;
  std::set<std::pair<std::string_view, std::string_view>> files;
  for (const PublishedFile& f : published_files()) {
    sets.insert(f.set);
    EXPECT_TRUE(files.emplace(f.set, f.file).second) << f.set << " " << f.file;
    EXPECT_EQ(f.sha256.size(), 64u) << f.file;
    EXPECT_EQ(f.sha256.find_first_not_of("0123456789abcdef"), std::string_view::npos) << f.file;
  }
  EXPECT_EQ(sets, (std::set<std::string_view>{"adult", "bank", "cifar-10", "fashion-mnist", "glove",
                                              "imdb", "ipums-br", "minilm", "mnist"}));
  const std::string abc = "abc";  // FIPS 180-2
  EXPECT_EQ(sha256_of({reinterpret_cast<const std::uint8_t*>(abc.data()), abc.size()}),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/// Files of one folder, with one bit changed at most.
class PublishedContent : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path folder = shared_file("data") / "adult";
    if (!fs::exists(folder)) GTEST_SKIP() << "no adult in " << shared_file("data");
    train_ = unpacked(folder / "adult.data.gz");
    test_ = unpacked(folder / "adult.test.gz");
  }
  static std::string unpacked(const fs::path& path) {
    std::vector<std::uint8_t> bytes;
    append_bytes(*open_bytes(path), 1u << 30, bytes);
    return {bytes.begin(), bytes.end()};
  }
  std::string refusal(const TempFolder& dir) const {
    return refusal_of([&] { load_data({.dataset = "adult", .dir = dir.path()}); }, dir.path());
  }

  std::string train_, test_;
};

TEST_F(PublishedContent, IsTakenHoweverItIsPackedAndNotWithOneDigitChanged) {
  const TempFolder dir;
  dir.write("adult.data", train_);
  dir.write("adult.test.xz", xzipped(test_));
  EXPECT_EQ(refusal(dir), "");
  std::string other = train_;
  const std::size_t digit = other.rfind("40, United");
  ASSERT_NE(digit, std::string::npos);
  other[digit] = '5';
  dir.write("adult.data", other);
  EXPECT_TRUE(refusal(dir).starts_with("DIR/adult.data: expected the published")) << refusal(dir);
  dir.write("adult.data", train_ + "\n");  // the same rows
  EXPECT_TRUE(refusal(dir).starts_with("DIR/adult.data: expected the published")) << refusal(dir);
  // Each file is what it is called.
  dir.write("adult.data", train_);
  fs::remove(dir.path() + "/adult.test.xz");
  dir.write("adult.test", train_);
  EXPECT_TRUE(refusal(dir).starts_with("DIR/adult.test: expected the published")) << refusal(dir);
}

/// The declaration decides what is public, not the content.
TEST_F(PublishedContent, UnderAPathIsPrivate) {
  const TempFolder dir;
  const std::string train = dir.write("adult.data", train_);
  const std::string test = dir.write("adult.test", test_);
  const std::string schema = dir.write("adult.toml", shipped_schema("adult"));
  const DataSplit split = load_data({.dataset = train, .schema = schema, .test_path = test});
  EXPECT_EQ(split.train.size(), 32'561u);
  EXPECT_FALSE(split.size_is_public);
  EXPECT_FALSE(split.test_is_public);
}

TEST(Published, AnEmbeddingsNameIsAClaim) {
  const TempFolder dir;
  const std::string table = dir.write("t.tsv", "1\tgood\n0\tbad\n");
  const std::string schema =
      dir.write("s.toml",
                "header = false\ndelimiter = \"\\t\"\ncolumns = [{name='y', kind='label', "
                "values=['0','1']}, {name='t', kind='text'}]");
  const auto refusal = [&](TextOptions text) {
    return refusal_of(
        [&] {
          load_data(
              {.dataset = table, .dir = dir.path(), .schema = schema, .text = std::move(text)});
        },
        dir.path());
  };
  const std::string own = dir.write("glove/glove.6B.50d.txt", "good 1 2\nbad 3 4\n");
  EXPECT_EQ(refusal({.embedding = own}), "");
  const std::string line = refusal({.embedding = "glove"});
  EXPECT_TRUE(line.starts_with("DIR/glove/glove.6B.50d.txt: expected the published")) << line;
  EXPECT_NE(line.find("--embedding FILE"), std::string::npos) << line;
  // A preset's list is public by that preset's word for it.
  const std::string list = dir.write("public20k_words.txt", "good\nbad\n");
  EXPECT_EQ(refusal({.vocabulary = list}), "");
  EXPECT_TRUE(refusal({.vocabulary = list, .vocabulary_is_public = true})
                  .starts_with("DIR/public20k_words.txt: expected the published"));
}

}  // namespace
}  // namespace cudp
