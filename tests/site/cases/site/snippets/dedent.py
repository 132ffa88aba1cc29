class Hidden:
    if True:
        # --8<-- [start:body]
        def double(x):

            return 2 * x
        # --8<-- [end:body]
