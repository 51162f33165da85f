# shellcheck shell=bash
# What provision.sh downloads. Each: package, file, SHA-256 of what is taken of it and, if that is not all of it, where it begins and its length.
# The wheel of LibTorch is a zip: its headers and the libraries of a CPU build lie in one piece of it, those of CUDA in the next.
# shellcheck disable=SC2034
torch_wheel=torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl
torch_cpu_piece=(torch "$torch_wheel" 2e432e2a3323f744f76cb68bfdc104414103290314df84683cb49c3ef22744be 23716327 131379169)
torch_cuda_piece=(torch "$torch_wheel" bec2340c083cc06193a128d16b9353a863bb56596675cb4f544104023846f221 155095496 371891423)
torch_whole=(torch "$torch_wheel" 7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a)
cudart=(nvidia-cuda-runtime nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
        7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548)
cupti=(nvidia-cuda-cupti nvidia_cuda_cupti-13.0.85-py3-none-manylinux_2_25_x86_64.whl
       4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8)
imgui=(imgui-bundle imgui_bundle-1.92.801.tar.gz 7d790708affe7476969d397784b40eb91760a201ce752131e5bedf4d514e3a45)
# What LibTorch's CUDA half loads, by its own pins, then NVIDIA's compiler with the headers it reads: for ./ranklab setup --cuda.
cuda_wheels=(
  "nvidia-cudnn-cu13 nvidia_cudnn_cu13-9.19.0.56-py3-none-manylinux_2_27_x86_64.whl
   d20e1734305e9d68889a96e3f35094d733ff1f83932ebe462753973e53a572bf"
  "nvidia-cusparselt-cu13 nvidia_cusparselt_cu13-0.8.0-py3-none-manylinux2014_x86_64.whl
   25e30a8a7323935d4ad0340b95a0b69926eee755767e8e0b1cf8dd85b197d3fd"
  "nvidia-nccl-cu13 nvidia_nccl_cu13-2.28.9-py3-none-manylinux_2_18_x86_64.whl
   e4553a30f34195f3fa1da02a6da3d6337d28f2003943aa0a3d247bbc25fefc42"
  "nvidia-nvshmem-cu13 nvidia_nvshmem_cu13-3.4.5-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
   290f0a2ee94c9f3687a02502f3b9299a9f9fe826e6d0287ee18482e78d495b80"
  "nvidia-cublas nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_x86_64.whl
   ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171"
  "nvidia-cuda-nvrtc nvidia_cuda_nvrtc-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl
   ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575"
  "${cudart[*]}"
  "nvidia-cufft nvidia_cufft-12.0.0.61-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
   6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3"
  "nvidia-cufile nvidia_cufile-1.15.1.6-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
   08a3ecefae5a01c7f5117351c64f17c7c62efa5fffdbe24fc7d298da19cd0b44"
  "nvidia-curand nvidia_curand-10.4.0.35-py3-none-manylinux_2_27_x86_64.whl
   1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc"
  "nvidia-cusolver nvidia_cusolver-12.0.4.66-py3-none-manylinux_2_27_x86_64.whl
   0a759da5dea5c0ea10fd307de75cdeb59e7ea4fcb8add0924859b944babf1112"
  "nvidia-cusparse nvidia_cusparse-12.6.3.3-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
   2b3c89c88d01ee0e477cb7f82ef60a11a4bcd57b6b87c33f789350b59759360b"
  "nvidia-nvjitlink nvidia_nvjitlink-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl
   13a74f429e23b921c1109976abefacc69835f2f433ebd323d3946e11d804e47b"
  "nvidia-cuda-nvcc nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
   56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03"
  "nvidia-nvvm nvidia_nvvm-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl
   c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0"
  "nvidia-cuda-crt nvidia_cuda_crt-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
   2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4"
  "nvidia-cuda-cccl nvidia_cuda_cccl-13.0.85-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
   e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649"
)
