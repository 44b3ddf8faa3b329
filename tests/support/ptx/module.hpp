#pragma once
// PTX as it stands in a program's fat binaries, parsed for the interpreter. What the parser does
// not know is a Fault: nothing is guessed or skipped.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudp::ptx {

using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Error of a program that a device could not run, or that is wrong on some device. The message
/// states the fault and where it is: kernel, block, thread, line of the PTX and of the source.
struct Fault : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Warp;
struct Instruction;
/// Runs an instruction for the lanes whose bits are set.
using Action = void (*)(Warp&, const Instruction&, u32 lanes);

inline constexpr u32 kLanes = 32;

/// One operand for 32 lanes: a row of the warp's registers or of the kernel's constants, or a
/// predicate with one bit per lane. A row has 8 bytes per lane if the operand has, otherwise 4.
struct Operand {
  enum class Kind : u8 { none, reg, constant, predicate };
  Kind kind = Kind::none;
  u8 width = 0;  ///< bytes: 2, 4 or 8
  u16 id = 0;    ///< number of the register or the predicate
  u32 at = 0;    ///< offset in the registers or the constants [bytes]

  bool is_register() const { return kind == Kind::reg; }
  bool is_constant() const { return kind == Kind::constant; }
  bool is_predicate() const { return kind == Kind::predicate; }
  u32 row_bytes() const { return kLanes * (width == 8 ? 8u : 4u); }
};

enum class Form : u8 { plain, branch, exit, block_barrier, warp };

struct Instruction {
  Action run = nullptr;
  Form form = Form::plain;
  bool guard_negated = false;
  bool uniform = false;  ///< bra.uni
  bool tracked = false;  ///< it names a register of Kernel::tracked_registers, or a predicate
  u8 results = 0;        ///< of `d`
  u8 sources = 0;        ///< of `s`
  u8 elements = 1;       ///< of a vector in memory
  i32 guard = -1;        ///< a predicate
  u32 target = 0;        ///< of a branch
  u32 used = ~0u;        ///< bytes of a load that are used, a bit each
  i64 offset = 0;        ///< added to the address, which is s[0]
  Operand mask;          ///< lanes that a warp operation names
  Operand predicate;     ///< a predicate that is a result
  std::array<Operand, 10> s;
  std::array<Operand, 4> d;
};

/// Position of an instruction in the module's text and in the source.
struct Place {
  u32 at = 0, size = 0;  ///< in the module's text
  u32 line = 0;          ///< of the module's text, from 1
  u32 file = 0;          ///< of .file; 0: not known
  u32 source_line = 0;
};

struct Parameter {
  u32 at = 0, bytes = 0;
};

struct SharedVariable {
  u32 at = 0, bytes = 0;
};

class Module;

/// %tid, %ntid, %ctaid, %nctaid (x, y, z each), %laneid.
inline constexpr u32 kSpecialRegisters = 13;

struct Kernel {
  const Module* module = nullptr;
  bool has_named_barriers = false;
  std::string name;
  std::vector<Instruction> code;
  std::vector<Place> places;  ///< of `code`
  std::vector<Parameter> parameters;
  u32 parameter_bytes = 0;
  /// Shared variables. They are laid out with gaps, so that an access between them is detected.
  std::vector<SharedVariable> shared;
  u32 shared_bytes = 0;         ///< with the space between them: dynamic memory begins here
  u32 static_shared_bytes = 0;  ///< as ptxas would count them
  u32 max_threads = 1024;       ///< .maxntid
  u32 register_bytes = 0;       ///< a warp's
  u32 registers = 0;            ///< names; their rows are shared, see registers.cpp
  u32 predicates = 0;
  /// True for registers and predicates that some path reads before it writes them. Only these are
  /// checked at run time.
  std::vector<bool> tracked_registers, tracked_predicates;
  bool tracks = false;  ///< there is one
  std::vector<u8> constants;
  /// Special registers. Those that the kernel does not read have Kind::none.
  std::array<Operand, kSpecialRegisters> special;

  u32 max_dynamic_shared = 48 * 1024;  ///< cudaFuncSetAttribute
  u64 launches = 0;
};

/// Text of a module. Kernels are parsed when they are first needed.
class Module {
 public:
  /// Throws Fault on text outside of kernels that it does not support.
  explicit Module(std::string text);
  /// Returns the kernel with this name; null if there is none. Throws Fault on text in the kernel
  /// that it does not support.
  Kernel* find(const std::string& name);
  std::vector<std::string> kernels() const;
  /// Returns the architecture that the PTX is for: 90 for sm_90.
  u32 target() const { return target_; }
  std::string_view text(const Place& p) const;
  /// Returns the position in the source as "file:line"; empty if it is not known.
  std::string source(const Place& p) const;

 private:
  friend class KernelParser;
  /// Offsets in the text at which a kernel's parameters begin and its body ends.
  struct Entry {
    std::size_t begin = 0, end = 0;
  };
  std::string text_;  ///< without comments
  u32 target_ = 0;
  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<std::string> shared_;  ///< declarations outside of kernels
  std::map<u32, std::string> files_;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> parsed_;
};

/// Form in which an instruction's operands are written.
enum class Syntax : u8 {
  plain,        ///< results, sources
  load,         ///< results, [address]
  store,        ///< [address], sources
  atomic,       ///< result, [address], sources
  copy,         ///< [to], [from], bytes, bytes that are read
  branch,       ///< label
  exit,         ///< nothing
  barrier,      ///< 0
  warp,         ///< results, sources, lanes
  matrix,       ///< {results}, {a}, {b}, {c}; all lanes
  matrix_load,  ///< {results}, [address]; all lanes
};

/// Action of an instruction, and its operands: a letter for each result, a colon, a letter for each
/// source. 2, 4 and 8 are registers of this many bytes; a, b and c are registers of at least 1, 2
/// and 4 bytes; p is a predicate, q a predicate or a constant, o an optional predicate. A source
/// may be a constant.
struct Operation {
  Action run = nullptr;
  Syntax syntax = Syntax::plain;
  std::string shape;
};
/// Returns the operation of an instruction; null if the interpreter does not support it. name: with
/// types, without .v2 or .v4. A mov from or to several registers has " {2}" or " ={2}" after its
/// type's name.
const Operation* find_operation(std::string_view name);

}  // namespace cudp::ptx
