#pragma once
// Runs kernels of parsed modules on an emulated device, with memory that detects races
// (memory.hpp).
#include <map>
#include <string>
#include <vector>

#include "tests/support/ptx/memory.hpp"
#include "tests/support/ptx/module.hpp"

namespace cudp::ptx {

struct Dim {
  u32 x = 1, y = 1, z = 1;
  u64 count() const { return u64{x} * y * z; }
};

/// Properties of the emulated device, as a program can query them. They determine how many blocks
/// are in flight.
struct Device {
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  u32 multiprocessors = 1;
  u32 shared_per_multiprocessor = 0;  ///< bytes
  u32 shared_per_block = 0;           ///< bytes that a block may ask for (opt-in)
  u32 threads_per_multiprocessor = 2048;
  u32 blocks_per_multiprocessor = 32;
  u64 memory = 0;  ///< bytes
};
/// Returns the properties of an H100, A100 or L4. Throws std::invalid_argument for another name.
const Device& device_named(std::string_view name);

struct Block;

struct Launch {
  Kernel* kernel = nullptr;
  Dim grid{}, block{};
  u32 dynamic_shared = 0;        ///< bytes
  std::vector<u8> parameters{};  ///< laid out as Kernel::parameters say
  bool is_dependent = false;     ///< it may begin before the operation before it has ended
};

struct Totals {
  u64 launches = 0, blocks = 0, warp_instructions = 0, thread_instructions = 0;
};

class Interpreter {
 public:
  /// seed: determines the order of warps and blocks, which is one that a device may use.
  Interpreter(const Device& device, DeviceMemory& memory, u64 seed);
  ~Interpreter();

  /// Runs all blocks of a launch, as many at a time as fit on the device, and into 512 MB of this
  /// machine's memory. Sets order.first; the caller provides order.before(). Throws Fault with the
  /// kernel, block, thread, and line of PTX and of the source.
  void run(const Launch& launch, HappensBefore& order);

  /// Returns a new interval number, for a copy or fill.
  u32 next_interval();

  const Device& device() const { return device_; }
  const Totals& totals() const { return totals_; }
  /// Unusual events that are not faults, and how often each occurred.
  const std::map<std::string, u64>& notes() const { return notes_; }

 private:
  struct State;
  void check(const Launch& launch) const;
  void begin(Block& block, const Launch& launch, u64 number);

  const Device& device_;
  DeviceMemory& memory_;
  u32 next_interval_ = 1;
  Totals totals_;
  std::map<std::string, u64> notes_;
  std::unique_ptr<State> state_;
};

/// Returns the number of blocks that fit on a multiprocessor at once, by threads and shared memory;
/// 0 if not even one does.
u32 blocks_in_flight(const Device& device, const Kernel& kernel, u32 threads, u32 dynamic_shared);

}  // namespace cudp::ptx
