#pragma once
// Runs kernels of parsed modules on a device that is stated, over memory that knows who touched it.
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

/// A device as it states itself to a program: how many blocks are in flight follows from it.
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
/// H100, A100 or L4. Throws std::invalid_argument for another name.
const Device& device_named(std::string_view name);

struct Block;

struct Launch {
  Kernel* kernel = nullptr;
  Dim grid, block;
  u32 dynamic_shared = 0;      ///< bytes
  std::vector<u8> parameters;  ///< laid out as Kernel::parameters say
};

struct Totals {
  u64 launches = 0, blocks = 0, warp_instructions = 0, thread_instructions = 0;
};

class Interpreter {
 public:
  /// Every order of warps and blocks that the seed chooses is one that a device may take.
  Interpreter(const Device& device, DeviceMemory& memory, u64 seed);
  ~Interpreter();

  /// Runs all blocks of a launch, as many at a time as the device holds (and 512 MB of this
  /// machine's memory, if that is less). order.first is set here; what order.before() says of
  /// earlier operations is the caller's. Throws Fault: kernel, block, thread, line of PTX and of
  /// the source.
  void run(const Launch& launch, HappensBefore& order);

  /// The number of an interval that nothing else has: one for each copy or fill.
  u32 next_interval();

  const Device& device() const { return device_; }
  const Totals& totals() const { return totals_; }
  /// What is odd and no fault, and how often.
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

/// Blocks that a multiprocessor holds at once, by threads and shared memory; 0: not even one.
u32 blocks_in_flight(const Device& device, const Kernel& kernel, u32 threads, u32 dynamic_shared);

}  // namespace cudp::ptx
