"""MNIST: 70,000 handwritten digits of 28 × 28 pixels (LeCun, Cortes, Burges)."""

from epsilometer.data.idx import IdxImages

MNIST = IdxImages(
    name="mnist",
    class_names=tuple("0123456789"),
    address="https://ossci-datasets.s3.amazonaws.com/mnist/",  # the authors' own server no longer serves files
    md5={
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
    npz="mnist.npz",
)
