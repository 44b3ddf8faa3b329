#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/threads.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/cifar.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/idx.hpp"
#include "runtime/data/published.hpp"
#include "runtime/data/range.hpp"
#include "runtime/data/sources.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// Names of CIFAR-10's file of test images, and of a file with the first 1,000 of them only.
constexpr const char* kCifarTest = "test_batch.bin";
constexpr const char* kCifarFirstTest = "test_batch_first1000.bin";

/// Calls read(i) for all files i in parallel, because decompression takes most of the time. If
/// several files cannot be read, throws the error of the lowest i.
void read_side_by_side(std::size_t files, const std::function<void(std::size_t)>& read) {
  ThreadTeam team(std::min(available_cores(), static_cast<int>(files)));
  std::vector<std::exception_ptr> errors(files);
  team.run(files, [&](std::size_t i, int) {
    try {
      read(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

/// Returns the claim about a file in `folder`, for read_claimed(). If `set` is the name of a
/// published data set, the claim is that the file has the content published for it. If `set` is
/// empty, the file is the user's own, and its content is not checked.
Claim claim_of(const std::string& set, std::string file, const fs::path& folder) {
  return {.set = set,
          .file = std::move(file),
          .own = "for images of your own, which are private: --dataset " + folder.string()};
}

/// The training set or the test set of a folder of IDX files: the paths of its two files, and their
/// content.
struct IdxPart {
  std::string prefix;  ///< start of the file names: "train" or "t10k"
  fs::path images_path;
  fs::path labels_path;
  IdxImages images;
  IdxLabels labels;
};

IdxPart find_idx_part(const fs::path& folder, const std::string& prefix) {
  return {prefix,
          require_file(folder, {prefix + "-images-idx3-ubyte", prefix + "-images.idx3-ubyte"}),
          require_file(folder, {prefix + "-labels-idx1-ubyte", prefix + "-labels.idx1-ubyte"}),
          {},
          {}};
}

/// Throws InputError if a label is not below `classes`. first: number of the first label in the
/// file. place: text in front of a label's number in messages, e.g. "label ".
void check_labels(const fs::path& file, const char* place, const std::vector<std::uint8_t>& labels,
                  int classes, std::size_t first = 0) {
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] >= classes)
      bad_input(file.string(), place + std::to_string(first + i),
                "a class of 0 to " + std::to_string(classes - 1) +
                    " (cudp train --classes N if there are others)",
                std::to_string(labels[i]));
}

Dataset to_dataset(IdxPart part, int classes, Share share) {
  if (part.labels.whole != part.images.whole)
    bad_input(part.labels_path.string(), "byte 4",
              "one label for each image of " + part.images_path.filename().string(),
              part.labels.whole < part.images.whole ? "fewer" : "more");
  const std::size_t first = share.of(part.images.whole).begin;
  check_labels(part.labels_path, "label ", part.labels.labels, classes, first);
  Dataset set;
  set.shape = {1, part.images.rows, part.images.columns};
  set.classes = classes;
  set.bytes = std::move(part.images.pixels);
  set.rows = std::move(part.images.file);
  set.holds_bytes = true;
  set.labels = std::move(part.labels.labels);
  record_range(set, share, part.images.whole);
  return set;
}

/// Ranges of the records that one rank (process) reads from CIFAR-10's files. The last file is the
/// test set.
struct CifarShare {
  std::vector<ExampleRange> ranges;  ///< records to read from each file
  std::uint64_t train = 0;           ///< number of training records of all ranks together
  std::uint64_t test = 0;
};

/// Computes which records of each file this rank reads. files: the training files, then the test
/// file. The number of records in an uncompressed file follows from its size; a compressed file is
/// read to count them.
CifarShare share_of(const std::vector<fs::path>& files, Share share) {
  CifarShare all{.ranges = std::vector<ExampleRange>(files.size(), kAllRecords)};
  if (share.is_all()) return all;
  std::vector<std::uint64_t> records(files.size());
  read_side_by_side(files.size(),
                    [&](std::size_t i) { records[i] = count_cifar(*open_bytes(files[i])); });
  all.test = records.back();
  records.back() = 0;
  for (const std::uint64_t n : records) all.train += n;
  const ExampleRange mine = share.of(all.train);
  std::uint64_t first = 0;
  for (std::size_t i = 0; i + 1 < files.size(); first += records[i], ++i)
    all.ranges[i] = {std::clamp(mine.begin, first, first + records[i]) - first,
                     std::clamp(mine.end, first, first + records[i]) - first};
  all.ranges.back() = share.of(all.test);
  return all;
}

Dataset to_dataset(CifarRecords records, int classes) {
  Dataset set;
  set.shape = {3, kCifarSide, kCifarSide};
  set.classes = classes;
  set.bytes = std::move(records.pixels);
  set.holds_bytes = true;
  set.labels = std::move(records.labels);
  return set;
}

}  // namespace

DataSplit load_idx_folder(const fs::path& folder, const FolderFacts& facts) {
  std::array<IdxPart, 2> parts = {find_idx_part(folder, "train"), find_idx_part(folder, "t10k")};
  for (const fs::path& path : {parts[1].images_path, parts[1].labels_path})
    check_apart(path, {parts[0].images_path, parts[0].labels_path});
  read_side_by_side(4, [&](std::size_t i) {
    IdxPart& part = parts[i % 2];
    if (i < 2)
      read_claimed(part.images_path,
                   claim_of(facts.set, part.prefix + "-images-idx3-ubyte", folder),
                   [&](ByteReader& reader) {
                     part.images = read_idx_images(reader, facts.share, facts.storage);
                   });
    else
      read_claimed(part.labels_path,
                   claim_of(facts.set, part.prefix + "-labels-idx1-ubyte", folder),
                   [&](ByteReader& reader) { part.labels = read_idx_labels(reader, facts.share); });
  });
  auto& [train, test] = parts;
  if (train.images.rows != test.images.rows || train.images.columns != test.images.columns)
    bad_input(test.images_path.string(), "byte 8",
              std::to_string(train.images.rows) + " x " + std::to_string(train.images.columns) +
                  " pixels as in " + train.images_path.filename().string(),
              std::to_string(test.images.rows) + " x " + std::to_string(test.images.columns));
  DataSplit split;
  split.train = to_dataset(std::move(train), facts.classes, facts.share);
  split.test = to_dataset(std::move(test), facts.classes, facts.share);
  return split;
}

DataSplit load_cifar_folder(const fs::path& folder, const FolderFacts& facts) {
  std::vector<std::string> files;
  std::vector<fs::path> paths;
  for (int batch = 1; batch <= 5; ++batch) {
    files.push_back("data_batch_" + std::to_string(batch) + ".bin");
    paths.push_back(require_file(folder, {files.back()}));
  }
  paths.push_back(require_file(folder, {kCifarTest, kCifarFirstTest}));
  const bool first = paths.back().filename().string().starts_with("test_batch_first1000");
  files.emplace_back(first ? kCifarFirstTest : kCifarTest);
  check_apart(paths.back(), {paths.begin(), paths.end() - 1});
  const CifarShare share = share_of(paths, facts.share);
  std::vector<CifarRecords> batches(paths.size());
  read_side_by_side(paths.size(), [&](std::size_t i) {
    read_claimed(paths[i], claim_of(facts.set, files[i], folder),
                 [&](ByteReader& reader) { batches[i] = read_cifar(reader, share.ranges[i]); });
  });
  for (std::size_t i = 0; i < batches.size(); ++i)
    check_labels(paths[i], "record ", batches[i].labels, facts.classes, share.ranges[i].begin);

  DataSplit split;
  split.test = to_dataset(std::move(batches.back()), facts.classes);
  record_range(split.test, facts.share, share.test);
  if (first)
    split.notes.emplace_back("the test set is the first 1,000 images of test_batch.bin only");
  batches.pop_back();
  std::size_t count = 0;
  for (const CifarRecords& b : batches) count += b.labels.size();
  CifarRecords all;
  all.pixels.reserve(count * kCifarPixels);
  all.labels.reserve(count);
  for (CifarRecords& b : batches) {
    all.pixels.insert(all.pixels.end(), b.pixels.begin(), b.pixels.end());
    all.labels.insert(all.labels.end(), b.labels.begin(), b.labels.end());
    b = {};  // frees the memory, so that there is never a second copy of everything
  }
  split.train = to_dataset(std::move(all), facts.classes);
  record_range(split.train, facts.share, share.train);
  return split;
}

}  // namespace cudp
