#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/base/threads.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/cifar.hpp"
#include "runtime/data/idx.hpp"
#include "runtime/data/sources.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// Decompression takes most of the time, so files are read side by side.
void read_side_by_side(std::size_t files, const std::function<void(std::size_t)>& read) {
  ThreadTeam team(std::min(available_cores(), static_cast<int>(files)));
  team.run(files, [&](std::size_t i, int) { read(i); });
}

struct IdxPart {
  fs::path images_path;
  fs::path labels_path;
  IdxImages images;
  std::vector<std::uint8_t> labels;
};

IdxPart find_idx_part(const fs::path& folder, const std::string& prefix) {
  return {require_file(folder, {prefix + "-images-idx3-ubyte", prefix + "-images.idx3-ubyte"}),
          require_file(folder, {prefix + "-labels-idx1-ubyte", prefix + "-labels.idx1-ubyte"}),
          {},
          {}};
}

Dataset to_dataset(IdxPart part, int classes) {
  if (part.labels.size() != part.images.count())
    bad_input(part.labels_path.string(), "byte 4",
              std::to_string(part.images.count()) + " labels, one for each image of " +
                  part.images_path.filename().string(),
              std::to_string(part.labels.size()));
  for (std::size_t i = 0; i < part.labels.size(); ++i)
    if (part.labels[i] >= classes)
      bad_input(part.labels_path.string(), "label " + std::to_string(i),
                "a class of 0 to " + std::to_string(classes - 1), std::to_string(part.labels[i]));
  Dataset set;
  set.shape = {1, part.images.rows, part.images.columns};
  set.classes = classes;
  set.bytes = std::move(part.images.pixels);
  set.labels = std::move(part.labels);
  return set;
}

Dataset to_dataset(CifarRecords records) {
  Dataset set;
  set.shape = {3, kCifarSide, kCifarSide};
  set.classes = kCifarClasses;
  set.bytes = std::move(records.pixels);
  set.labels = std::move(records.labels);
  return set;
}

}  // namespace

DataSplit load_idx_folder(const fs::path& folder, int classes) {
  std::array<IdxPart, 2> parts = {find_idx_part(folder, "train"), find_idx_part(folder, "t10k")};
  read_side_by_side(4, [&](std::size_t i) {
    IdxPart& part = parts[i % 2];
    if (i < 2)
      part.images = read_idx_images(*open_bytes(part.images_path));
    else
      part.labels = read_idx_labels(*open_bytes(part.labels_path));
  });
  auto& [train, test] = parts;
  if (train.images.rows != test.images.rows || train.images.columns != test.images.columns)
    bad_input(test.images_path.string(), "byte 8",
              std::to_string(train.images.rows) + " x " + std::to_string(train.images.columns) +
                  " pixels as in " + train.images_path.filename().string(),
              std::to_string(test.images.rows) + " x " + std::to_string(test.images.columns));
  const int largest = *std::max_element(test.labels.begin(), test.labels.end());
  if (classes == 0) classes = std::max(2, largest + 1);
  DataSplit split;
  split.train = to_dataset(std::move(train), classes);
  split.test = to_dataset(std::move(test), classes);
  return split;
}

DataSplit load_cifar_folder(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (int batch = 1; batch <= 5; ++batch)
    paths.push_back(require_file(folder, {"data_batch_" + std::to_string(batch) + ".bin"}));
  paths.push_back(require_file(folder, {"test_batch.bin", "test_batch_first1000.bin"}));
  std::vector<CifarRecords> batches(paths.size());
  read_side_by_side(paths.size(),
                    [&](std::size_t i) { batches[i] = read_cifar(*open_bytes(paths[i])); });

  DataSplit split;
  split.test = to_dataset(std::move(batches.back()));
  if (paths.back().filename().string().starts_with("test_batch_first1000"))
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
    b = {};  // frees it, so that no second copy of everything exists
  }
  split.train = to_dataset(std::move(all));
  return split;
}

}  // namespace cudp
