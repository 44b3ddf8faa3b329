// What a rank reads of a data set: its range of what one process reads, of every kind of data.
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/data/examples.hpp"
#include "runtime/data/load.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

/// More than seven tiles, the last one short.
constexpr int kRangeRows = 3'900;

std::string csv_of(int rows) {
  std::string csv = "who,x,colour,class\n";
  for (int i = 0; i < rows; ++i)
    csv += "P" + std::to_string(i * 7919 % 1'500) + "," + std::to_string(i * 31 % 997) + "," +
           (i % 5 == 0 ? "red" : "blue") + "," + (i % 3 == 0 ? "yes" : "no") + "\n";
  return csv;
}

constexpr const char* kRangeColumns = R"(columns = [
  {name = "who", kind = "ignore"},
  {name = "x", kind = "numeric", min = 0, max = 1000, fill = 500},
  {name = "colour", kind = "categorical", values = ["red", "blue"]},
  {name = "class", kind = "label", values = ["no", "yes"], fill = "no"},
]
)";

std::string reviews_of(int rows) {
  const std::string words[] = {"good", "bad", "plot", "actor", "the", "a", "never", "again"};
  std::string tsv = "label\ttext\n";
  for (int i = 0; i < rows; ++i) {
    tsv += i % 2 == 0 ? "pos\t" : "neg\t";
    for (int k = 0; k <= i * 7 % 11; ++k) tsv += words[(i * 13 + k * k) % 8] + " ";
    tsv += '\n';
  }
  return tsv;
}

std::string images_of(int count) {
  std::string pixels;
  for (int i = 0; i < count * 12; ++i) pixels += static_cast<char>(i * 7919 >> 3);
  return idx_images(static_cast<std::uint32_t>(count), 3, 4, pixels);
}

std::string labels_of(int count) {
  std::string labels;
  for (int i = 0; i < count; ++i) labels += static_cast<char>(i * 7 % 10);
  return idx_labels(static_cast<std::uint32_t>(count), labels);
}

std::string cifar_records(int first, int count) {
  std::string all;
  for (int i = first; i < first + count; ++i) {
    all += static_cast<char>(i * 3 % 10);
    for (int k = 0; k < 3072; ++k) all += static_cast<char>(i * 31 + k);
  }
  return all;
}

void expect_same(const Dataset& got, const Dataset& want) {
  EXPECT_EQ(got.shape, want.shape);
  EXPECT_EQ(got.classes, want.classes);
  EXPECT_EQ(got.words, want.words);
  EXPECT_EQ(got.bytes, want.bytes);
  EXPECT_EQ(got.floats, want.floats);
  EXPECT_EQ(got.coded, want.coded);
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.lengths, want.lengths);
  EXPECT_EQ(got.labels, want.labels);
  EXPECT_EQ(got.targets, want.targets);
  EXPECT_EQ(got.numbers, want.numbers);
  EXPECT_EQ(got.first_rows, want.first_rows);
}

/// Returns the data set with its features in memory.
Dataset in_memory(const Dataset& data) {
  if (data.rows == nullptr) return data;
  std::vector<std::uint32_t> all(data.size());
  std::iota(all.begin(), all.end(), 0u);
  FetchedExamples fetched;
  Dataset copy = fetched.fetch(data, all);
  copy.numbers = data.numbers;
  copy.first_rows = data.first_rows;
  copy.whole = data.whole;
  return copy;
}

/// Reads the data by itself and on each number of ranks, which must have its parts, one behind the
/// other. has_files: features can stay in files, and are then the same.
void expect_ranges(DataRequest request, std::initializer_list<int> sizes = {1, 2, 3, 4, 7},
                   bool has_files = true) {
  const DataSplit whole = load_data(request);
  ASSERT_GT(whole.train.size(), 0u);
  EXPECT_EQ(whole.train.whole, 0u);
  for (const int size : sizes) {
    for (int rank = 0; rank < size; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(size));
      request.share = {rank, size};
      const DataSplit mine = load_data(request);
      DataRequest from_files = request;
      if (has_files)
        from_files.storage = {.where = RowsIn::file,
                              .folder = std::filesystem::temp_directory_path()};
      const DataSplit stored = load_data(from_files);
      EXPECT_EQ(stored.train.rows != nullptr, has_files);
      EXPECT_TRUE(!has_files || (stored.train.bytes.empty() && stored.train.floats.empty() &&
                                 stored.train.coded.empty() && stored.train.tokens.empty()));
      EXPECT_EQ(stored.train.first, mine.train.first);
      EXPECT_EQ(stored.train.whole, mine.train.whole);
      expect_same(in_memory(stored.train), mine.train);
      expect_same(in_memory(stored.test), mine.test);
      for (const auto& [part, all] :
           {std::pair{&mine.train, &whole.train}, {&mine.test, &whole.test}}) {
        const ExampleRange range = range_of(rank, size, all->size());
        Dataset want = empty_like(*all);
        append_examples(*all, range, want);
        expect_same(*part, want);
        EXPECT_EQ(part->whole_size(), all->size());
        EXPECT_EQ(part->first, size > 1 ? range.begin : 0);
      }
      EXPECT_EQ(mine.unit_rows, whole.unit_rows);
      EXPECT_EQ(mine.notes, whole.notes);
      EXPECT_EQ(mine.unsafe, whole.unsafe);
    }
  }
}

class Ranges : public testing::Test {
 protected:
  /// A table of kRangeRows rows with this schema, and a test table.
  DataRequest table(const std::string& about = "", const std::string& name = "t.csv",
                    const std::string& csv = csv_of(kRangeRows)) {
    return {.dataset = dir_.write(name, csv),
            .schema = dir_.write("t.toml", "name = \"t\"\n" + about + kRangeColumns)};
  }
  TempFolder dir_;
};

TEST_F(Ranges, ImagesPlainAndPacked) {
  dir_.write("train-images-idx3-ubyte", images_of(kRangeRows));
  dir_.write("train-labels-idx1-ubyte.gz", gzipped(labels_of(kRangeRows)));
  dir_.write("t10k-images-idx3-ubyte.xz", xzipped(images_of(1'100)));
  dir_.write("t10k-labels-idx1-ubyte", labels_of(1'100));
  expect_ranges({.dataset = dir_.path()});
}

TEST_F(Ranges, CifarOverItsFiles) {
  int first = 0;
  const int counts[] = {700, 1, 513, 90, 1'200};
  for (int b = 0; b < 5; ++b) {
    const std::string name = "data_batch_" + std::to_string(b + 1) + ".bin";
    const std::string records = cifar_records(first, counts[b]);
    first += counts[b];
    if (b == 1)
      dir_.write(name + ".gz", gzipped(records));
    else if (b == 3)
      dir_.write(name + ".xz", xzipped(records));
    else
      dir_.write(name, records);
  }
  dir_.write("test_batch.bin", cifar_records(9'000, 600));
  expect_ranges({.dataset = dir_.path()}, {1, 2, 3, 4, 7}, false);
}

TEST_F(Ranges, Tables) {
  expect_ranges(table());
  DataRequest packed = table("", "t.csv.gz", gzipped(csv_of(kRangeRows)));
  packed.test_path = dir_.write("test.csv", csv_of(700));
  expect_ranges(packed, {3});
  // Bounds and categories of all rows, on every rank.
  std::string csv = "x,colour,class\n";
  for (int i = 0; i < kRangeRows; ++i)
    csv += std::to_string(i) + (i == kRangeRows - 1 ? ",green" : ",red") +
           (i % 3 == 0 ? ",a\n" : ",b\n");
  const DataRequest open = {.dataset = dir_.write("open.csv", csv), .accept_private_bounds = true};
  expect_ranges(open, {4});
}

TEST_F(Ranges, RowsOfUnitsThatLieAnywhere) {
  const DataRequest units = table("unit = \"who\"\nmax_rows = 2\n");
  expect_ranges(units);
  DataRequest broken = table("unit = \"who\"\nmax_rows = 2\n", "t.csv",
                             csv_of(2'000) + "a row\n" + csv_of(1'900).substr(19) + ",1,red,no\n");
  broken.malformed = Malformed::missing;
  expect_ranges(broken, {2, 3});
}

TEST_F(Ranges, HeldOutRows) {
  DataRequest rows = table();
  rows.holdout.emplace(key_from_seed(5), 0.3);
  expect_ranges(rows);
  DataRequest units = table("unit = \"who\"\nmax_rows = 2\n");
  units.holdout.emplace(key_from_seed(6), 0.4);
  expect_ranges(units, {2, 3, 7});
  std::vector<float> x(std::size_t{kRangeRows} * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 31 % 17);
  DataRequest matrix = {
      .dataset = dir_.write("x.npy", npy_floats(kRangeRows, x)),
      .labels_path = dir_.write("y.npy", npy_labels(std::vector<std::int64_t>(kRangeRows, 1))),
      .classes = 2};
  expect_ranges(matrix);
  const std::string y = matrix.labels_path;
  for (const std::string& file :
       {dir_.write("x64.npy",
                   npy("<f8", "(3900, 3)", bytes_of(std::vector<double>(x.begin(), x.end())))),
        dir_.write("x.npy.gz", gzipped(npy_floats(kRangeRows, x))),
        dir_.write("bytes.npy",
                   npy("|u1", "(3900, 2, 3)", std::string(std::size_t{kRangeRows} * 6, 'a')))}) {
    matrix.dataset = file;
    expect_ranges(matrix, {1, 2});
  }
  matrix.dataset = dir_.write(
      "last.npy", npy("|u1", "(3900, 2, 2, 3)", std::string(std::size_t{kRangeRows} * 12, 'a')));
  matrix.arrays.channels_last = true;
  expect_ranges(matrix, {1});
  matrix = {.dataset = dir_.path() + "/x.npy", .labels_path = y, .classes = 2};
  matrix.malformed = Malformed::missing;
  expect_ranges(matrix, {1});
  matrix.malformed = Malformed::refuse;
  matrix.holdout.emplace(key_from_seed(7), 0.2);
  expect_ranges(matrix, {3, 4});
}

TEST_F(Ranges, Texts) {
  DataRequest request = {.dataset = dir_.write("t.tsv", reviews_of(kRangeRows)),
                         .schema = dir_.write("t.toml", R"(name = "t"
delimiter = "\t"
columns = [
  {name = "label", kind = "label", values = ["neg", "pos"]},
  {name = "text", kind = "text"},
]
)"),
                         .test_path = dir_.write("test.tsv", reviews_of(600)),
                         .accept_private_bounds = true};
  request.text.tokens = 8;
  expect_ranges(request);
}

TEST_F(Ranges, BuiltInSets) {
  expect_ranges({.dataset = "sentences"}, {1, 2, 3, 4, 7}, false);
  expect_ranges({.dataset = "glyphs"}, {3}, false);
}

/// Published files, where a copy lies beside the project.
TEST_F(Ranges, PublishedSets) {
  const auto data = shared_file("data");
  for (const char* name : {"adult", "bank", "ipums-br"}) {
    SCOPED_TRACE(name);
    const std::string folder = std::string(name) == "ipums-br" ? "ipums" : name;
    if (std::filesystem::exists(data / folder))
      expect_ranges({.dataset = name, .dir = data.string()}, {3}, false);
  }
}

/// Whoever finds a fault names its place in the whole file.
TEST_F(Ranges, FaultsAreNamedByTheirPlaceInTheFile) {
  const auto refusal = [&](DataRequest request, int rank) {
    request.share = {rank, 3};
    return refusal_of([&] { load_data(request); }, dir_.path());
  };
  // A row that cannot be read is every rank's business.
  const DataRequest bad = table("", "t.csv", csv_of(3'000) + "P,much,red,yes\n");
  for (const int rank : {0, 1, 2})
    EXPECT_EQ(refusal(bad, rank),
              "DIR/t.csv, line 3002, column 'x': expected a finite number, found 'much'");
  const DataRequest short_one = table("", "t.csv", csv_of(3'000) + "P,red,yes\n");
  for (const int rank : {0, 2})
    EXPECT_EQ(refusal(short_one, rank), "DIR/t.csv, line 3002: expected 4 cells, found 3");

  const TempFolder images;
  for (int b = 1; b <= 5; ++b)
    images.write("data_batch_" + std::to_string(b) + ".bin", cifar_records(0, 600));
  images.write("test_batch.bin", cifar_records(0, 10));
  std::string odd = cifar_records(0, 600);
  odd[std::size_t{590} * 3073] = 11;
  images.write("data_batch_2.bin", odd);
  const auto of_images = [&](int rank) {
    return refusal_of(
        [&] {
          load_data({.dataset = images.path(), .share = {rank, 3}});
        },
        images.path());
  };
  EXPECT_EQ(of_images(0), "");
  EXPECT_EQ(of_images(1), "DIR/data_batch_2.bin, record 590: expected a label of 0 to 9, found 11");
  images.write("data_batch_2.bin", cifar_records(0, 600) + "abc");
  for (const int rank : {0, 1, 2})
    EXPECT_EQ(of_images(rank),
              "DIR/data_batch_2.bin, record 600: expected 3073 bytes, found the end of the file "
              "after 3");
}

TEST(KeptRanges, RefuseAnotherNumberOfRows) {
  Dataset block;
  block.shape = {1, 1, 1};
  block.floats.assign(1'000, 1.0f);
  block.labels.assign(1'000, 0);
  for (const std::uint64_t said : {999u, 1'001u}) {
    KeptRange kept(empty_like(block), {1, 2}, said);
    kept.take(block);
    EXPECT_THROW(kept.finish("t.csv"), Error);
  }
}

}  // namespace
}  // namespace cudp
