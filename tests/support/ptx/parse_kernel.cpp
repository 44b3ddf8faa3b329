// One kernel's text, made into instructions.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "tests/support/ptx/text.hpp"

namespace cudp::ptx {

namespace {

constexpr u32 kApart = 64;                     // bytes between shared variables
constexpr u64 kDynamic = 0xd1a311c0d1a311c0u;  // stands for an address that is not known yet
constexpr const char* kSpecialNames[kSpecialRegisters] = {
    "%tid.x",   "%tid.y",   "%tid.z",    "%ntid.x",   "%ntid.y",   "%ntid.z", "%ctaid.x",
    "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid"};

u32 round_up(u32 value, u32 to) { return (value + to - 1) / to * to; }

std::string one_line(std::string_view text) {
  std::string line;
  for (const std::string_view word : split_at_spaces(text))
    line += (line.empty() ? "" : " ") + std::string(word);
  return line;
}

}  // namespace

class KernelParser {
 public:
  KernelParser(const Module& module, const std::string& name)
      : module_(module), entry_(module.entries_.at(name)) {
    kernel_->module = &module;
    kernel_->name = name;
    at_ = entry_.begin;
    line_ = 1 + static_cast<u32>(std::count(module.text_.begin(),
                                            module.text_.begin() + static_cast<long>(at_), '\n'));
    scopes_.emplace_back();
  }

  std::unique_ptr<Kernel> parse() {
    try {
      parse_header();
      for (const std::string& declaration : module_.shared_)
        if (is_named(parse_declaration(split_at_spaces(declaration)).name))
          declare_shared(declaration);
      while (at_ < entry_.end) parse_statement();
      finish();
    } catch (const Fault& f) {
      throw Fault(std::string(f.what()) + "\n  kernel " + kernel_->name + ", line " +
                  std::to_string(line_) + " of its module: " + one_line(statement_));
    }
    return std::move(kernel_);
  }

 private:
  /// %r<5>, or one register.
  struct Names {
    Operand first;
    u32 count = 1;
    bool numbered = false;
  };
  struct SharedName {
    u32 at = 0;
    bool dynamic = false;
  };
  using Scope = std::unordered_map<std::string, Names>;

  [[noreturn]] void unknown(const std::string& what) const { throw Fault("ptx: unknown " + what); }

  // ---- text

  void advance(std::size_t to) {
    for (; at_ < to; ++at_)
      if (module_.text_[at_] == '\n') ++line_;
  }
  void skip_spaces() {
    while (at_ < entry_.end && is_space(module_.text_[at_])) advance(at_ + 1);
  }
  /// Up to the character and past it.
  std::string_view until(char c) {
    const std::size_t from = at_, to = module_.text_.find(c, at_);
    if (to >= entry_.end) unknown(std::string("statement without ") + c);
    advance(to + 1);
    return std::string_view(module_.text_).substr(from, to - from);
  }
  bool is_named(const std::string& name) const {
    return module_.text_.find(name, entry_.begin) < entry_.end;
  }
  std::string_view next_word() const {
    std::size_t to = at_;
    while (to < entry_.end && is_word(module_.text_[to])) ++to;
    return std::string_view(module_.text_).substr(at_, to - at_);
  }

  // ---- what stands before the body

  void parse_header() {
    skip_spaces();
    if (module_.text_[at_] == '(') {
      advance(at_ + 1);
      for (const std::string_view text : split_at_commas(until(')'))) declare_parameter(text);
    }
    for (skip_spaces(); module_.text_[at_] != '{'; skip_spaces()) {
      const std::string directive(next_word());
      advance(at_ + directive.size());
      const std::string_view value = trim(until('\n'));
      if (directive == ".maxntid") {
        kernel_->max_threads = 1;
        for (const std::string_view n : split_at_commas(value))
          kernel_->max_threads *= parse_number<u32>(n);
      } else if (directive == ".minnctapersm") {
        parse_number<u32>(value);  // registers follow from it, which are ptxas's
      } else {
        unknown("directive " + directive);
      }
    }
  }

  void declare_parameter(std::string_view text) {
    auto words = split_at_spaces(text);
    if (words.empty() || words[0] != ".param") unknown("parameter " + std::string(text));
    words.erase(words.begin());
    const Declaration d = parse_declaration(words);
    const u32 at = round_up(kernel_->parameter_bytes, d.align);
    kernel_->parameter_bytes = at + d.bytes;
    kernel_->parameters.push_back({at, d.bytes});
    if (!d.sized || !parameters_.emplace(d.name, at).second) unknown("parameter " + d.name);
  }

  /// Dynamic memory stands behind all others: its place is known at the end.
  void declare_shared(std::string_view text) {
    const Declaration d = parse_declaration(split_at_spaces(text));
    SharedName name;
    name.dynamic = !d.sized;
    if (d.sized) {
      name.at = round_up(kernel_->shared_bytes == 0 ? 0 : kernel_->shared_bytes + kApart, d.align);
      kernel_->shared_bytes = name.at + d.bytes;
      kernel_->shared.push_back({name.at, d.bytes});
      kernel_->static_shared_bytes = round_up(kernel_->static_shared_bytes, d.align) + d.bytes;
    }
    if (!shared_.emplace(d.name, name).second) unknown("second shared variable " + d.name);
  }

  // ---- statements

  void parse_statement() {
    skip_spaces();
    if (at_ == entry_.end) return;
    const char c = module_.text_[at_];
    statement_ = std::string_view(module_.text_).substr(at_, 100);
    if (c == '{') {
      advance(at_ + 1);
      scopes_.emplace_back();
    } else if (c == '}') {
      advance(at_ + 1);
      scopes_.pop_back();
    } else if (c == '.') {
      parse_directive();
    } else {
      const std::string_view word = next_word();
      std::size_t after = at_ + word.size();
      while (after < entry_.end && is_space(module_.text_[after])) ++after;
      if (!word.empty() && module_.text_[after] == ':') {
        if (!labels_.emplace(word, static_cast<u32>(kernel_->code.size())).second)
          unknown("second label " + std::string(word));
        advance(after + 1);
      } else {
        parse_instruction();
      }
    }
  }

  void parse_directive() {
    const std::string directive(next_word());
    advance(at_ + directive.size());
    if (directive == ".loc") {
      const auto words = split_at_spaces(until('\n'));  // and what it was inlined at
      if (words.size() < 3) unknown(".loc");
      file_ = parse_number<u32>(words[0]);
      source_line_ = parse_number<u32>(words[1]);
    } else if (directive == ".reg") {
      declare_registers(until(';'));
    } else if (directive == ".shared") {
      declare_shared(until(';'));
    } else if (directive == ".pragma") {
      const std::string_view text = trim(until(';'));
      if (text.starts_with("\"used_bytes_mask ") && text.ends_with('"')) {
        used_ = parse_number<u32>(text.substr(17, text.size() - 18));
      } else if (text != "\"nounroll\"") {
        unknown("pragma " + std::string(text));
      }
    } else {
      unknown("directive " + directive);
    }
  }

  void declare_registers(std::string_view text) {
    text = trim(text);
    std::size_t n = 0;
    while (n < text.size() && !is_space(text[n])) ++n;
    const std::string_view type = text.substr(0, n);
    Operand o;
    o.kind = type == ".pred" ? Operand::Kind::predicate : Operand::Kind::reg;
    for (const auto& [names, width] : {std::pair{" .b16 .u16 .s16 .f16 ", 2},
                                       {" .b32 .u32 .s32 .f32 .f16x2 ", 4},
                                       {" .b64 .u64 .s64 .f64 ", 8}})
      if (std::string_view(names).find(' ' + std::string(type) + ' ') != std::string_view::npos)
        o.width = static_cast<u8>(width);
    if (o.is_register() && o.width == 0) unknown("type of registers " + std::string(type));
    for (std::string_view name : split_at_commas(text.substr(n))) {
      Names names;
      if (const auto bracket = name.find('<'); bracket != std::string_view::npos) {
        names.numbered = true;
        names.count = parse_number<u32>(name.substr(bracket + 1, name.size() - bracket - 2));
        name = name.substr(0, bracket);
      }
      u32& used = o.is_predicate() ? kernel_->predicates : kernel_->registers;
      if (used + names.count > 65535) unknown("number of registers");
      names.first = o;
      names.first.id = static_cast<u16>(used);
      used += names.count;
      if (!scopes_.back().emplace(name, names).second)
        unknown("second register " + std::string(name));
    }
  }

  // ---- operands

  /// A register or a predicate; no kind if there is none of that name.
  Operand find_register(const std::string& name) {
    std::size_t n = name.size();
    while (n > 0 && is_digit(name[n - 1])) --n;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto one = scope->find(name); one != scope->end() && !one->second.numbered)
        return one->second.first;
      if (n == name.size()) continue;
      const auto many = scope->find(name.substr(0, n));
      if (many == scope->end() || !many->second.numbered) continue;
      const u32 number = parse_number<u32>(std::string_view(name).substr(n));
      if (number >= many->second.count) continue;
      Operand o = many->second.first;
      o.id = static_cast<u16>(o.id + number);
      return o;
    }
    return find_special(name);
  }

  Operand find_special(const std::string& name) {
    for (u32 k = 0; k < kSpecialRegisters; ++k) {
      if (name != kSpecialNames[k]) continue;
      Operand& o = kernel_->special[k];
      if (o.kind == Operand::Kind::none) {
        o.kind = Operand::Kind::reg;
        o.width = 4;
        o.id = static_cast<u16>(kernel_->registers++);
      }
      return o;
    }
    return {};
  }

  /// The same value for all lanes.
  Operand constant(u64 value, u8 width) {
    Operand o;
    o.kind = Operand::Kind::constant;
    o.width = width;
    const auto [at, is_new] = constants_.try_emplace({value, width == 8 ? 8 : 4}, 0);
    if (is_new) {
      std::vector<u8>& rows = kernel_->constants;
      const std::size_t step = width == 8 ? 8 : 4;
      at->second = static_cast<u32>(rows.size());
      rows.resize(rows.size() + kLanes * step);
      for (u32 lane = 0; lane < kLanes; ++lane)
        std::memcpy(rows.data() + at->second + lane * step, &value, step);
    }
    o.at = at->second;
    return o;
  }

  /// A number as it is written, for a register of that width.
  u64 number(std::string_view text, u8 width) {
    const bool floats = text.starts_with("0f"), doubles = text.starts_with("0d");
    if (floats || doubles) {
      const std::string digits = "0x" + std::string(text.substr(2));
      if (width != (floats ? 4 : 8) || digits.size() != (floats ? 10u : 18u))
        unknown("constant " + std::string(text));
      return parse_number<u64>(digits);
    }
    if (text.starts_with('-')) {
      const auto value = parse_number<i64>(text);
      if (width < 8 && value < -(i64{1} << (8 * width - 1)))
        unknown("constant " + std::string(text));
      return static_cast<u64>(value);
    }
    const auto value = parse_number<u64>(text);
    if (width < 8 && value >> (8 * width) != 0) unknown("constant " + std::string(text));
    return value;
  }

  /// Where dynamic memory begins: finish() writes it, when all other variables are known.
  Operand dynamic_shared(u8 width) {
    const Operand o = constant(kDynamic, width);
    dynamic_.insert({o.at, width});
    return o;
  }

  /// A source that is no register: a number, or a variable's address.
  Operand constant_operand(const std::string& text, u8 width) {
    if (const auto s = shared_.find(text); s != shared_.end() && width >= 4)
      return s->second.dynamic ? dynamic_shared(width) : constant(s->second.at, width);
    if (const auto p = parameters_.find(text); p != parameters_.end() && width >= 4)
      return constant(p->second, width);
    if (text.empty() || (!is_digit(text[0]) && text[0] != '-')) unknown("operand " + text);
    return constant(number(text, width), width);
  }

  static bool fits(const Operand& o, char letter) {
    switch (letter) {
      case '2':
      case '4':
      case '8':
        return o.is_register() && o.width == letter - '0';
      case 'a':
      case 'b':
      case 'c':
        return o.is_register() && o.width >= 1 << (letter - 'a');
      case 'p':
      case 'q':
      case 'o':
        return o.is_predicate();
      default:
        return false;
    }
  }

  Operand source(std::string_view text, char letter) {
    const std::string name(text);
    Operand o = find_register(name);
    if (o.kind == Operand::Kind::none && letter != 'p')
      o = constant_operand(name,
                           letter >= '2' && letter <= '8' ? static_cast<u8>(letter - '0') : 4);
    else if (!fits(o, letter))
      unknown("operand, or one of another width: " + name);
    return o;
  }

  void add_source(Instruction& i, std::string_view text, char letter) {
    if (i.sources == i.s.size()) unknown("number of operands");
    i.s[i.sources++] = source(text, letter);
  }

  void add_result(Instruction& i, std::string_view text, char letter) {
    const Operand o = find_register(std::string(text));
    if (!fits(o, letter)) unknown("result, or one of another width: " + std::string(text));
    for (const Operand& special : kernel_->special)
      if (special.is_register() && o.is_register() && special.id == o.id)
        unknown("result " + std::string(text));
    if (o.is_predicate()) {
      i.predicate = o;
    } else {
      if (i.results == i.d.size()) unknown("number of results");
      i.d[i.results++] = o;
    }
  }

  /// {a, b}, or a.
  static std::vector<std::string_view> elements(std::string_view text) {
    if (!text.starts_with('{')) return {text};
    if (!text.ends_with('}')) throw Fault("ptx: unknown operand " + std::string(text));
    return split_at_commas(text.substr(1, text.size() - 2));
  }

  /// [register+offset] or [variable+offset]. It becomes s[0], which has no kind for a parameter.
  void add_address(Instruction& i, std::string_view text, const std::string& opcode) {
    if (!text.starts_with('[') || !text.ends_with(']')) unknown("address " + std::string(text));
    text = trim(text.substr(1, text.size() - 2));
    if (const auto plus = text.find('+'); plus != std::string_view::npos) {
      i.offset = parse_number<i64>(trim(text.substr(plus + 1)));
      text = trim(text.substr(0, plus));
    }
    const std::string name(text);
    const bool shared = opcode.find(".shared") != std::string::npos;
    Operand o = find_register(name);
    if (o.kind != Operand::Kind::none) {
      if (!fits(o, '8') && !(shared && fits(o, '4'))) unknown("address " + name);
    } else if (const auto p = parameters_.find(name);
               p != parameters_.end() && opcode.starts_with("ld.param.")) {
      i.offset += p->second;
    } else if (const auto s = shared_.find(name); s != shared_.end() && shared) {
      o = s->second.dynamic ? dynamic_shared(8) : constant(s->second.at, 8);
    } else {
      unknown("address " + name);
    }
    i.s[0] = o;
    i.sources = 1;
  }

  // ---- instructions

  void parse_instruction() {
    Place place;
    place.at = static_cast<u32>(at_);
    place.line = line_;
    place.file = file_;
    place.source_line = source_line_;
    std::string_view text = trim(until(';'));
    statement_ = text;
    place.size = static_cast<u32>(text.size());
    Instruction i;
    if (text.starts_with('@')) {
      std::string_view guard = text.substr(1, text.find_first_of(" \t\n") - 1);
      text = trim(text.substr(1 + guard.size()));
      if (guard.starts_with('!')) {
        i.guard_negated = true;
        guard.remove_prefix(1);
      }
      const Operand o = find_register(std::string(guard));
      if (!o.is_predicate()) unknown("guard " + std::string(guard));
      i.guard = o.id;
    }
    std::size_t n = 0;
    while (n < text.size() && is_word(text[n])) ++n;
    std::string opcode(text.substr(0, n));
    const auto operands = split_at_commas(text.substr(n));
    parse_operands(i, opcode, operands);
    kernel_->code.push_back(i);
    kernel_->places.push_back(place);
  }

  void parse_operands(Instruction& i, std::string opcode,
                      const std::vector<std::string_view>& operands) {
    const std::string written = opcode;
    for (const auto& [vector, count] : {std::pair{".v2.", 2}, {".v4.", 4}})
      if (const auto at = opcode.find(vector); at != std::string::npos) {
        opcode.erase(at, 3);
        i.elements = static_cast<u8>(count);
      }
    const bool moves = opcode.starts_with("mov.") && operands.size() == 2;
    if (moves && operands[0].starts_with('{'))
      opcode += " {" + std::to_string(elements(operands[0]).size()) + "}";
    if (moves && operands[1].starts_with('{'))
      opcode += " ={" + std::to_string(elements(operands[1]).size()) + "}";
    const Operation* const operation = find_operation(opcode);
    if (operation == nullptr) unknown("instruction " + written);
    i.run = operation->run;
    std::string results = operation->shape.substr(0, operation->shape.find(':'));
    std::string sources = operation->shape.substr(results.size() + 1);
    const Syntax syntax = operation->syntax;
    const bool vectors = syntax == Syntax::load || syntax == Syntax::store;
    if (i.elements > 1) {
      const bool sixteen = opcode.back() == '4' ? i.elements * 8 > 16 : false;
      if (!vectors || sixteen) unknown("vector " + written);
      if (syntax == Syntax::load) results.append(i.elements - 1u, results[0]);
      if (syntax == Syntax::store) sources.append(i.elements - 1u, sources[0]);
    }

    std::size_t next = 0;
    const auto take = [&] {
      if (next == operands.size()) unknown("number of operands");
      return operands[next++];
    };
    switch (syntax) {
      case Syntax::plain:
        take_results(i, results, take);
        take_sources(i, sources, take);
        break;
      case Syntax::load:
        i.used = used_;
        used_ = ~0u;
        take_results(i, results, take);
        add_address(i, take(), opcode);
        break;
      case Syntax::store:
        add_address(i, take(), opcode);
        take_sources(i, sources, take);
        break;
      case Syntax::atomic:
        take_results(i, results, take);
        add_address(i, take(), opcode);
        take_sources(i, sources, take);
        break;
      case Syntax::copy:
        take_copy(i, take, operands.size() > 3);
        break;
      case Syntax::branch:
        i.form = Form::branch;
        i.uniform = opcode == "bra.uni";
        branches_.emplace_back(kernel_->code.size(), std::string(take()));
        break;
      case Syntax::exit:
        i.form = Form::exit;
        break;
      case Syntax::barrier:
        i.form = Form::block_barrier;
        if (operands.size() == 1) {
          if (take() != "0") unknown("barrier");
        } else {  // a named one: its number, and how many threads come
          add_source(i, take(), '4');
          add_source(i, take(), '4');
          kernel_->has_named_barriers = true;
        }
        break;
      case Syntax::warp:
        i.form = Form::warp;
        take_results(i, results, take);
        take_sources(i, sources, take);
        i.mask = source(take(), '4');
        break;
      case Syntax::matrix:
        i.form = Form::warp;
        take_results(i, results, take);
        take_sources(i, sources, take);
        i.mask = constant(~0u, 4);
        break;
      case Syntax::matrix_load:
        i.form = Form::warp;
        take_results(i, results, take);
        add_address(i, take(), opcode);
        i.mask = constant(~0u, 4);
        break;
    }
    if (next != operands.size()) unknown("number of operands");
    if (used_ != ~0u) unknown("place of a pragma about used bytes");
  }

  /// Operands of one brace are taken together.
  template <class Take>
  void take_results(Instruction& i, const std::string& letters, Take& take) {
    for (std::size_t k = 0; k < letters.size();) {
      std::string_view text = take();
      if (k + 1 < letters.size() && letters[k + 1] == 'o') {
        if (const auto bar = text.find('|'); bar != std::string_view::npos) {
          add_result(i, trim(text.substr(bar + 1)), 'o');
          text = trim(text.substr(0, bar));
        }
        add_result(i, text, letters[k]);
        k += 2;
        continue;
      }
      for (const std::string_view element : elements(text)) {
        if (k == letters.size()) unknown("number of results");
        add_result(i, element, letters[k++]);
      }
    }
  }
  template <class Take>
  void take_sources(Instruction& i, const std::string& letters, Take& take) {
    for (std::size_t k = 0; k < letters.size();)
      for (const std::string_view element : elements(take())) {
        if (k == letters.size()) unknown("number of operands");
        add_source(i, element, letters[k++]);
      }
  }
  /// [to], [from], 16, bytes that are read
  template <class Take>
  void take_copy(Instruction& i, Take& take, bool part) {
    add_address(i, take(), "cp.async.shared");
    Instruction from;
    add_address(from, take(), "cp.async.global");
    if (from.offset != 0) unknown("offset of a copy");
    i.s[i.sources++] = from.s[0];
    const std::string_view bytes = take();
    if (bytes != "16") unknown("copy of so many bytes: " + std::string(bytes));
    add_source(i, bytes, '4');
    if (part) add_source(i, take(), '4');
  }

  void finish() {
    if (scopes_.size() != 1) unknown("braces");
    const bool ends = !kernel_->code.empty() && kernel_->code.back().form == Form::exit &&
                      kernel_->code.back().guard < 0;
    const bool jumps = !kernel_->code.empty() && kernel_->code.back().form == Form::branch &&
                       kernel_->code.back().guard < 0;
    if (!ends && !jumps) unknown("end of a kernel: it runs on behind its last instruction");
    for (const auto& [at, label] : branches_) {
      const auto target = labels_.find(label);
      if (target == labels_.end() || target->second >= kernel_->code.size())
        unknown("label " + label);
      kernel_->code[at].target = target->second;
    }
    if (!dynamic_.empty() && kernel_->shared_bytes != 0)
      kernel_->shared_bytes = round_up(kernel_->shared_bytes + kApart, 16);
    const u64 begin = kernel_->shared_bytes;
    for (const auto& [at, width] : dynamic_)
      for (u32 lane = 0; lane < kLanes; ++lane)
        std::memcpy(kernel_->constants.data() + at + std::size_t{width} * lane, &begin, width);
    assign_rows(*kernel_);
  }

  const Module& module_;
  const Module::Entry entry_;
  std::unique_ptr<Kernel> kernel_ = std::make_unique<Kernel>();
  std::size_t at_ = 0;
  u32 line_ = 1;
  std::string_view statement_;
  u32 file_ = 0, source_line_ = 0;
  u32 used_ = ~0u;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string, u32> parameters_;
  std::unordered_map<std::string, SharedName> shared_;
  std::unordered_map<std::string, u32> labels_;
  std::vector<std::pair<std::size_t, std::string>> branches_;
  std::map<u32, u8> dynamic_;  ///< rows of constants that are its address, and their widths
  std::map<std::pair<u64, int>, u32> constants_;
};

std::unique_ptr<Kernel> parse_kernel(const Module& module, const std::string& name) {
  return KernelParser(module, name).parse();
}

}  // namespace cudp::ptx
