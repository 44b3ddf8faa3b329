#pragma once
// Bounds of the accountant in memory that a process of tests shares with the processes it forks, so
// that hundreds of trainings with the same settings compute each bound once.
#include <memory>
#include <optional>
#include <string>

#include "privacy/known_losses.hpp"

namespace cudp {

class SharedBounds final : public privacy::BoundStore {
 public:
  /// Allocates the memory, a file without a name. Processes that are started later share it: forks
  /// of this one as they are, programs by inherit().
  SharedBounds();
  SharedBounds(const SharedBounds&) = delete;
  SharedBounds& operator=(const SharedBounds&) = delete;
  ~SharedBounds() override;
  /// Tells programs that this process starts where the memory is, by an environment variable.
  void export_file() const;
  /// Returns the bounds of the process that started this program; null if it shares none.
  static std::unique_ptr<SharedBounds> inherit();

  std::optional<privacy::PrivacyBound> find(const std::string& question) const override;
  /// Adds nothing if the memory is full. A process may be killed at any time in this function: what
  /// others find is whole.
  void add(const std::string& question, const privacy::PrivacyBound& bound) override;

 private:
  struct Table;
  explicit SharedBounds(Table* table) : table_(table) {}

  Table* table_ = nullptr;
  int file_ = -1;
};

/// Makes processes that this one starts from now on share their bounds, among themselves: forks of
/// it, and the program of tests/support/cudp_main.cpp. This process computes its own.
void share_bounds_of_started_processes();

}  // namespace cudp
