#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "privacy/known_losses.hpp"

namespace cudp {

/// Store of the privacy accountant's results (bounds) in memory that this process shares with the
/// processes that it forks, so that trainings with the same settings compute each bound once. The
/// memory is freed when the last of these processes ends. Thread-safe.
class SharedBounds final : public privacy::BoundStore {
 public:
  /// Size of the memory [bytes]. The operating system allocates a page only when it is first
  /// written.
  static constexpr std::size_t kBytes = std::size_t{64} << 20;

  /// Allocates the memory. If that fails, the object stores and finds nothing.
  SharedBounds();
  /// Maps a file of kBytes bytes into memory, and returns an object that finds and stores bounds
  /// there. Other processes that map the file share these bounds. Returns null if the file cannot
  /// be mapped, or contains anything but such bounds. The file can be closed afterwards.
  static std::unique_ptr<SharedBounds> in_file(int file);
  SharedBounds(const SharedBounds&) = delete;
  SharedBounds& operator=(const SharedBounds&) = delete;
  SharedBounds(SharedBounds&&) = delete;
  SharedBounds& operator=(SharedBounds&&) = delete;
  ~SharedBounds() override;

  std::optional<privacy::PrivacyBound> find(const std::string& question) const override;
  /// Stores a bound; does nothing if the memory is full. If the process is killed in this function,
  /// other processes do not find the incomplete bound.
  void add(const std::string& question, const privacy::PrivacyBound& bound) override;

 private:
  struct Table;
  explicit SharedBounds(Table* table) : table_(table) {}

  Table* table_ = nullptr;  ///< null: there is no memory
};

}  // namespace cudp
