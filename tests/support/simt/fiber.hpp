#pragma once
// The emulator's fibers, and what the sanitizers must be told about them. Included by
// emulator.cpp alone, which is built without TSan and without the fortified longjmp.
#include <csetjmp>
#include <cstddef>
#include <memory>

#include <ucontext.h>

// NOLINTBEGIN(bugprone-reserved-identifier)
// Present only in a program built with that sanitizer.
#define SIMT_WEAK extern "C" __attribute__((weak))
SIMT_WEAK void __sanitizer_start_switch_fiber(void** save, const void* bottom, std::size_t size);
SIMT_WEAK void __sanitizer_finish_switch_fiber(void* saved, const void** bottom, std::size_t* size);
SIMT_WEAK void __asan_poison_memory_region(const volatile void* p, std::size_t size);
SIMT_WEAK void* __tsan_get_current_fiber();
SIMT_WEAK void* __tsan_create_fiber(unsigned flags);
SIMT_WEAK void __tsan_destroy_fiber(void* fiber);
SIMT_WEAK void __tsan_switch_to_fiber(void* fiber, unsigned flags);
SIMT_WEAK void __tsan_acquire(void* address);
SIMT_WEAK void __tsan_release(void* address);
SIMT_WEAK void AnnotateIgnoreReadsBegin(const char* file, int line);
SIMT_WEAK void AnnotateIgnoreReadsEnd(const char* file, int line);
SIMT_WEAK void AnnotateIgnoreWritesBegin(const char* file, int line);
SIMT_WEAK void AnnotateIgnoreWritesEnd(const char* file, int line);
// NOLINTEND(bugprone-reserved-identifier)

namespace simt {

constexpr unsigned kTsanNoSync = 1;
constexpr std::size_t kStackBytes = 65536;

inline void acquire(void* at) {
  if (__tsan_acquire) __tsan_acquire(at);
}
inline void release(void* at) {
  if (__tsan_release) __tsan_release(at);
}

/// While this object lives, TSan ignores memory accesses. It is used for the emulator's own work,
/// which runs on a lane's stack but is not part of the lane's program.
class HiddenFromTsan {
 public:
  HiddenFromTsan() {
    if (AnnotateIgnoreReadsBegin) AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    if (AnnotateIgnoreWritesBegin) AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  HiddenFromTsan(const HiddenFromTsan&) = delete;
  HiddenFromTsan& operator=(const HiddenFromTsan&) = delete;
  ~HiddenFromTsan() {
    if (AnnotateIgnoreWritesEnd) AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    if (AnnotateIgnoreReadsEnd) AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
};

/// A stack, and the state in which it was suspended. ucontext starts a fiber; the compiler's setjmp
/// and longjmp switch between fibers, because they save only three registers, while swapcontext
/// needs a system call. Under sanitizers the C library's longjmp is used, which they support.
class Fiber {
 public:
  Fiber() = default;  // the caller's own stack
  explicit Fiber(void (*entry)()) : stack_(new char[kStackBytes]) {
    getcontext(&start_);
    start_.uc_stack.ss_sp = stack_.get();
    start_.uc_stack.ss_size = kStackBytes;
    start_.uc_link = nullptr;
    makecontext(&start_, entry, 0);
    bottom_ = stack_.get();
    size_ = kStackBytes;
    if (__tsan_create_fiber) tsan_ = __tsan_create_fiber(0);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
    if (stack_ && __tsan_destroy_fiber) __tsan_destroy_fiber(tsan_);
  }

  [[gnu::noinline]] static void switch_to(Fiber& from, Fiber& to) {
    if (__sanitizer_start_switch_fiber || __tsan_switch_to_fiber) return switch_watched(from, to);
    if (__builtin_setjmp(from.quick_) == 0) resume(to);
  }

  /// Must be called first on a new stack.
  void arrived() {
    if (__sanitizer_finish_switch_fiber)
      __sanitizer_finish_switch_fiber(fake_stack_, &previous_->bottom_, &previous_->size_);
  }

 private:
  [[gnu::noinline, noreturn]] static void resume(Fiber& to) {
    if (to.started_ || !to.stack_) __builtin_longjmp(to.quick_, 1);
    to.started_ = true;
    setcontext(&to.start_);
    __builtin_unreachable();
  }

  static void switch_watched(Fiber& from, Fiber& to) {
    if (!from.stack_ && __tsan_get_current_fiber) from.tsan_ = __tsan_get_current_fiber();
    previous_ = &from;
    if (_setjmp(from.here_) == 0) {
      if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.size_);
      if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(to.tsan_, kTsanNoSync);
      if (to.started_ || !to.stack_) _longjmp(to.here_, 1);
      to.started_ = true;
      setcontext(&to.start_);
    }
    from.arrived();
  }

  inline static Fiber* previous_ = nullptr;
  std::unique_ptr<char[]> stack_;
  ucontext_t start_{};
  jmp_buf here_{};       ///< state saved by switch_watched()
  void* quick_[5] = {};  ///< state saved by switch_to()
  bool started_ = false;
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
  void* fake_stack_ = nullptr;
  void* tsan_ = nullptr;
};

}  // namespace simt
