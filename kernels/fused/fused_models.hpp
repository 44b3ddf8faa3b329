#pragma once
// Networks that have a fused kernel, as compile-time descriptions: convolution, activation, pool,
// convolution, activation, pool, dense, activation, dense, cross-entropy. A pool of 1 means no
// pool. Each layer also states how the 256 threads of a block share its work. Each split was chosen
// to keep all threads busy while reading as few numbers from shared memory per multiply-add as
// registers allow (bench/roofline.md has the counts).
//
// kTransformedInRegisters applies if gradients are transformed before clipping. If true, a thread's
// numbers of the hidden layer stay in registers between the norm and the sum; otherwise they are in
// shared memory.
namespace cudp {

/// cnn (models/cnn.toml) on 28x28 grey: 26,010 parameters.
struct FusedCnn {
  static constexpr const char* kName = "cnn";
  struct First {
    static constexpr int kChannels = 1, kHeight = 28, kWidth = 28;
    static constexpr int kOut = 16, kKernel = 8, kStride = 2, kPad = 3, kPool = 2;
    struct Forward {  // a thread: 2 channels of half a row; 224 threads
      static constexpr int kChannels = 2, kRows = 1, kColumns = 7, kSlices = 1;
    };
    struct Gradient {  // a thread: a kernel row of 2 channels over a quarter of the rows
      static constexpr int kChannels = 2, kSlices = 4;
    };
  };
  struct Second {
    static constexpr int kChannels = 16, kHeight = 13, kWidth = 13;
    static constexpr int kOut = 32, kKernel = 4, kStride = 2, kPad = 0, kPool = 2;
    struct Forward {  // a thread: 2 whole channels from one input channel
      static constexpr int kChannels = 2, kRows = 5, kColumns = 5, kSlices = 16;
    };
    struct Gradient {  // a thread: a kernel row of 8 channels
      static constexpr int kChannels = 8, kSlices = 1;
    };
    struct Input {  // a thread: 3 rows of one channel from a quarter of the output channels
      static constexpr int kRows = 3, kSlices = 4;
    };
  };
  static constexpr int kHidden = 32;
  static constexpr bool kTransformedInRegisters = true;
  static constexpr int kOutputs = 10;
};

/// scatter-cnn (models/scatter-cnn.toml) on scattering features of 28x28 grey: 33,066 parameters.
struct FusedScatterCnn {
  static constexpr const char* kName = "scatter-cnn";
  struct First {
    static constexpr int kChannels = 81, kHeight = 7, kWidth = 7;
    static constexpr int kOut = 16, kKernel = 3, kStride = 2, kPad = 1, kPool = 1;
    struct Forward {  // a thread: 2 whole channels from every 32nd input channel
      static constexpr int kChannels = 2, kRows = 4, kColumns = 4, kSlices = 32;
    };
    struct Gradient {  // a thread: a kernel row of all channels; 243 threads
      static constexpr int kChannels = 16, kSlices = 1;
    };
  };
  struct Second {
    static constexpr int kChannels = 16, kHeight = 4, kWidth = 4;
    static constexpr int kOut = 32, kKernel = 3, kStride = 1, kPad = 1, kPool = 1;
    struct Forward {  // a thread: 2 whole channels from one input channel
      static constexpr int kChannels = 2, kRows = 4, kColumns = 4, kSlices = 16;
    };
    struct Gradient {  // a thread: a kernel row of 8 channels; 192 threads
      static constexpr int kChannels = 8, kSlices = 1;
    };
    struct Input {  // a thread: one channel from every 16th output channel
      static constexpr int kRows = 4, kSlices = 16;
    };
  };
  static constexpr int kHidden = 32;
  static constexpr bool kTransformedInRegisters = false;  // sums and gradients use 210 registers
  static constexpr int kOutputs = 10;
};

}  // namespace cudp
