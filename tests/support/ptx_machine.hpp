#pragma once
// Runs small PTX texts for the tests of the interpreter itself.
#include <string>
#include <vector>

#include "tests/support/ptx/interpreter.hpp"

namespace cudp::ptx {

/// Order in which every earlier operation has ended before the next one begins.
struct OneAfterTheOther final : HappensBefore {};

/// A device with memory, and the operations on both that tests need.
class Machine {
 public:
  explicit Machine(u64 seed = 1, const char* device = "H100")
      : memory_(u64{1} << 26), interpreter_(device_named(device), memory_, seed) {}

  u64 allocate(u64 bytes) { return memory_.allocate(bytes); }
  template <class T>
  u64 upload(const std::vector<T>& values) {
    const u64 address = memory_.allocate(values.size() * sizeof(T));
    std::memcpy(bytes(address, values.size() * sizeof(T), Access::write), values.data(),
                values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> download(u64 address, std::size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes(address, count * sizeof(T), Access::read), count * sizeof(T));
    return values;
  }

  /// Runs a kernel whose parameters have 64 bits each.
  void run(Kernel& kernel, Dim grid, Dim block, const std::vector<u64>& parameters,
           u32 dynamic_shared = 0) {
    OneAfterTheOther order;
    run(kernel, grid, block, parameters, dynamic_shared, order);
  }
  void run(Kernel& kernel, Dim grid, Dim block, const std::vector<u64>& parameters,
           u32 dynamic_shared, HappensBefore& order) {
    Launch launch{&kernel, grid, block, dynamic_shared, {}};
    launch.parameters.resize(8 * parameters.size());
    if (!parameters.empty())
      std::memcpy(launch.parameters.data(), parameters.data(), launch.parameters.size());
    interpreter_.run(launch, order);
  }

  DeviceMemory& memory() { return memory_; }
  Interpreter& interpreter() { return interpreter_; }

 private:
  u8* bytes(u64 address, u64 count, Access kind) {
    OneAfterTheOther order;
    Toucher host;
    host.interval = order.first = interpreter_.next_interval();
    return memory_.range(address, count, kind, host, order, "a copy");
  }

  DeviceMemory memory_;
  Interpreter interpreter_;
};

/// Returns the text of a module with one kernel, k, whose parameters k_param_0.. have 64 bits each.
/// Registers: %p, %rs, %r, %f, %rd, %fd, 64 of each.
inline std::string one_kernel(const std::string& body, u32 parameters = 1,
                              const std::string& directives = "", const std::string& before = "") {
  std::string list;
  for (u32 k = 0; k < parameters; ++k)
    list += (k > 0 ? "," : "") + std::string("\n.param .u64 k_param_") + std::to_string(k);
  return ".version 9.0\n.target sm_80\n.address_size 64\n" + before + "\n.visible .entry k(" +
         list + "\n)\n" + directives +
         "\n{\n.reg .pred %p<64>;\n.reg .b16 %rs<64>;\n.reg .b32 %r<64>;\n.reg .f32 %f<64>;\n"
         ".reg .b64 %rd<64>;\n.reg .f64 %fd<64>;\n" +
         body + "\n}\n";
}

}  // namespace cudp::ptx
